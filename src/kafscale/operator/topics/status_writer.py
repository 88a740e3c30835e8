"""What is told about topics in Kubernetes: statuses and events, and no more of them than needed.

The laws: a status is written if it is worth it; an event of trouble is left when the trouble
begins, not as long as it lasts. What was written a moment ago counts as what the resource says, for
a resource may come to us as it was before.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from kafscale.operator.conditions import TRUE, Condition
from kafscale.operator.kube.api import Kube, Manifest
from kafscale.operator.kube.kinds import TOPICS
from kafscale.operator.spec.status import AppliedStatus, PartitionStatus, TopicStatus, as_manifest
from kafscale.operator.spec.topic import TopicResource
from kafscale.operator.topics import status
from kafscale.operator.topics.apply import Event
from kafscale.operator.topics.plan import READY

EXPECTED: Final = frozenset({"ClusterNotReady", "DeletionUnderWay"})
"""Reasons not to be ready that pass by themselves, and are worth no event."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What has come of one look at a resource."""

    phase: str
    conditions: Sequence[Condition]
    applied: AppliedStatus | None
    topic_id: str
    partitions: Sequence[PartitionStatus]
    seconds: float
    """In which to look again."""


class _Written(NamedTuple):
    status: TopicStatus
    written_ms: int


class Bulletin:
    """Tells about topics."""

    def __init__(self, kube: Kube, clock: Callable[[], int]) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._clock = clock
        self._written: dict[str, _Written] = {}

    def before(self, resource: TopicResource) -> TopicStatus:
        """What was told last."""
        written = self._written.get(resource.uid)
        if written and self._clock() - written.written_ms < status.OFFSETS_MS:
            return written.status
        return status.read(resource.status)

    async def tell(self, resource: TopicResource, before: TopicStatus, finding: Finding) -> None:
        """Write the status, if it is worth it, and an event if trouble has begun."""
        now_ms = self._clock()
        after = status.assembled(
            resource,
            before,
            now_ms,
            phase=finding.phase,
            conditions=finding.conditions,
            applied=finding.applied,
            topic_id=finding.topic_id,
            partitions=finding.partitions,
        )
        written = self._written.get(resource.uid)
        since_ms = now_ms - written.written_ms if written else None
        if not status.is_worth_writing(before, after, since_ms):
            return
        await self._kube.apply_status({**about(resource), "status": as_manifest(after)})
        self._written[resource.uid] = _Written(after, now_ms)
        for condition in finding.conditions:
            if _is_new_trouble(condition, resource, before):
                message = f"{condition.reason}: {condition.message}"
                await self._kube.tell(about(resource), "Failed", message, warning=True)

    async def happened(self, resource: TopicResource, event: Event) -> None:
        """Leave an event of what was done."""
        await self._kube.tell(about(resource), event.reason, event.message)

    def forget(self, resource: TopicResource) -> None:
        """There is nothing more to tell of a resource."""
        self._written.pop(resource.uid, None)


def _is_new_trouble(condition: Condition, resource: TopicResource, before: TopicStatus) -> bool:
    """Whether a topic is not ready for another reason than before, or in spite of a new spec."""
    if condition.type != READY or condition.status == TRUE or condition.reason in EXPECTED:
        return False
    return (
        condition.reason != status.reason(before, READY)
        or resource.generation != before.observed_generation
    )


def about(resource: TopicResource) -> Manifest:
    """The resource as an object of Kubernetes, in short."""
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {"name": resource.name, "namespace": resource.namespace, "uid": resource.uid},
    }
