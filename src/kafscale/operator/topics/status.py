"""The statuses of topics' resources and the events about them, no more of them than needed.

Invariants: a log end offset that is unknown at the moment keeps its last value, if the topic is the
same. Offsets change all the time, so a change of offsets alone is written at most every
`OFFSETS_MS`. Other changes are written at once, and an unchanged status never. A failure is
recorded as an event when it begins, not as long as it lasts. A status that was just written counts
as the current one, because the resource may be read from a stale cache.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from kafscale.control_plane.messages import Partition
from kafscale.metadata.schema.model import NO_BROKER, Topic
from kafscale.operator.kube.api import TOPICS, Kube, Manifest
from kafscale.operator.spec.status import (
    TRUE,
    AppliedStatus,
    Condition,
    PartitionStatus,
    TopicStatus,
    as_manifest,
    to_status,
)
from kafscale.operator.spec.topic import TopicResource
from kafscale.operator.topics.plan import READY
from kafscale.text.formatting import format_time

OFFSETS_MS: Final = 30_000

Leader = Callable[[str, int], tuple[int, int]]
"""The leader of a partition, or `NO_BROKER`, and its leader epoch."""
EXPECTED: Final = frozenset({"ClusterNotReady", "DeletionInProgress"})
"""Transient reasons not to be ready, which are not recorded as events."""


class Event(NamedTuple):
    """A Kubernetes event."""

    reason: str
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one reconcile."""

    phase: str
    conditions: Sequence[Condition]
    applied: AppliedStatus | None
    topic_id: str
    partitions: Sequence[PartitionStatus]
    seconds: float
    """The time until the next check."""


def read(status: Mapping[str, Any]) -> TopicStatus:
    """The status of a resource; empty if it does not match the schema."""
    try:
        return msgspec.convert(status, TopicStatus)
    except msgspec.ValidationError:
        return TopicStatus()


def partitions(
    topic: Topic, leader: Leader, log_end_offsets: Mapping[Partition, int], before: TopicStatus
) -> list[PartitionStatus]:
    """The partitions of a topic as they are."""
    is_same = before.topic_id == topic.id.hex()
    known = {each.id: each.log_end_offset for each in before.partitions} if is_same else {}
    statuses = []
    for number in range(topic.partitions):
        leader_id, _ = leader(topic.name, number)
        end = log_end_offsets.get(Partition(topic.name, number), known.get(number))
        statuses.append(
            PartitionStatus(
                id=number,
                leader="" if leader_id == NO_BROKER else str(leader_id),
                log_end_offset=end,
            )
        )
    return statuses


def build_status(
    resource: TopicResource, before: TopicStatus, now_ms: int, outcome: Outcome
) -> TopicStatus:
    """Build a status; a condition with an unchanged status keeps its transition time."""
    former = {(each.type, each.status): each.last_transition_time for each in before.conditions}
    return TopicStatus(
        phase=outcome.phase,
        observed_generation=resource.generation,
        topic_id=outcome.topic_id,
        partitions=list(outcome.partitions),
        applied=outcome.applied,
        conditions=to_status(
            outcome.conditions, former, format_time(now_ms, "seconds"), resource.generation
        ),
    )


def should_write(before: TopicStatus, after: TopicStatus, since_ms: int | None) -> bool:
    """Whether to write a status; `since_ms` is the time since the last write, if known."""
    if after == before:
        return False
    return without_offsets(after) != without_offsets(before) or (
        since_ms is None or since_ms >= OFFSETS_MS
    )


def without_offsets(status: TopicStatus) -> TopicStatus:
    return replace(
        status, partitions=[replace(each, log_end_offset=None) for each in status.partitions]
    )


def reason(status: TopicStatus, condition: str) -> str:
    """The reason of a condition; empty if there is no such condition."""
    return next((each.reason for each in status.conditions if each.type == condition), "")


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
        if written and self._clock() - written.written_ms < OFFSETS_MS:
            return written.status
        return read(resource.status)

    async def write_status(
        self, resource: TopicResource, before: TopicStatus, outcome: Outcome
    ) -> None:
        """Write the status if it is due, and an event if a failure has begun."""
        now_ms = self._clock()
        after = build_status(resource, before, now_ms, outcome)
        written = self._written.get(resource.uid)
        since_ms = now_ms - written.written_ms if written else None
        if not should_write(before, after, since_ms):
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
        condition.reason != reason(before, READY)
        or resource.generation != before.observed_generation
    )


def reference(resource: TopicResource) -> Manifest:
    """The resource as an object that Kubernetes can identify."""
    return {
        "apiVersion": TOPICS.api_version,
        "kind": TOPICS.kind,
        "metadata": {"name": resource.name, "namespace": resource.namespace, "uid": resource.uid},
    }
