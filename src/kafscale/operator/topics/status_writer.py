"""Writes statuses and events of topics, no more of them than needed.

Invariants: a status is written only if `should_write` says so. A failure is recorded as an event
when it begins, not as long as it lasts. A status that was just written counts as the current one,
because the resource may be read from a stale cache.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from kafscale.operator.conditions import TRUE, Condition
from kafscale.operator.kube.api import TOPICS, Kube, Manifest
from kafscale.operator.spec.status import AppliedStatus, PartitionStatus, TopicStatus, as_manifest
from kafscale.operator.spec.topic import TopicResource
from kafscale.operator.topics import status
from kafscale.operator.topics.apply import Event
from kafscale.operator.topics.plan import READY

EXPECTED: Final = frozenset({"ClusterNotReady", "DeletionInProgress"})
"""Transient reasons not to be ready, which are not recorded as events."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one reconcile."""

    phase: str
    conditions: Sequence[Condition]
    applied: AppliedStatus | None
    topic_id: str
    partitions: Sequence[PartitionStatus]
    seconds: float
    """The time until the next check."""


class _Written(NamedTuple):
    status: TopicStatus
    written_ms: int


class StatusWriter:
    """Writes statuses and events."""

    def __init__(self, kube: Kube, clock: Callable[[], int]) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._clock = clock
        self._written: dict[str, _Written] = {}

    def before(self, resource: TopicResource) -> TopicStatus:
        """The status last written."""
        written = self._written.get(resource.uid)
        if written and self._clock() - written.written_ms < status.OFFSETS_MS:
            return written.status
        return status.read(resource.status)

    async def write_status(
        self, resource: TopicResource, before: TopicStatus, outcome: Outcome
    ) -> None:
        """Write the status if it is due, and an event if a failure has begun."""
        now_ms = self._clock()
        after = status.build_status(
            resource,
            before,
            now_ms,
            phase=outcome.phase,
            conditions=outcome.conditions,
            applied=outcome.applied,
            topic_id=outcome.topic_id,
            partitions=outcome.partitions,
        )
        written = self._written.get(resource.uid)
        since_ms = now_ms - written.written_ms if written else None
        if not status.should_write(before, after, since_ms):
            return
        await self._kube.apply_status({**reference(resource), "status": as_manifest(after)})
        self._written[resource.uid] = _Written(after, now_ms)
        for condition in outcome.conditions:
            if _is_new_failure(condition, resource, before):
                message = f"{condition.reason}: {condition.message}"
                await self._kube.record_event(reference(resource), "Failed", message, warning=True)

    async def record_event(self, resource: TopicResource, event: Event) -> None:
        """Record an event about a resource."""
        await self._kube.record_event(reference(resource), event.reason, event.message)

    def forget(self, resource: TopicResource) -> None:
        """Drop the state of a resource."""
        self._written.pop(resource.uid, None)


def _is_new_failure(condition: Condition, resource: TopicResource, before: TopicStatus) -> bool:
    """Whether a topic is not ready for a new reason, or despite a new spec."""
    if condition.type != READY or condition.status == TRUE or condition.reason in EXPECTED:
        return False
    return (
        condition.reason != status.reason(before, READY)
        or resource.generation != before.observed_generation
    )


def reference(resource: TopicResource) -> Manifest:
    """The resource as an object that Kubernetes can identify."""
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {"name": resource.name, "namespace": resource.namespace, "uid": resource.uid},
    }
