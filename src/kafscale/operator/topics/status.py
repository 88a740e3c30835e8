"""The status of a topic's resource: how it is built, and when it is written. Pure.

Invariants: a log end offset that is unknown at the moment keeps its last value, if the topic is the
same. Offsets change all the time, so a change of offsets alone is written at most every
`OFFSETS_MS`. Other changes are written at once, and an unchanged status never.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kafscale.control_plane.messages import Partition
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.metadata.schema.model import Topic
from kafscale.operator.conditions import Condition, to_status
from kafscale.operator.spec.status import (
    AppliedStatus,
    PartitionStatus,
    TopicStatus,
    as_manifest,
    to_conditions,
)
from kafscale.operator.spec.topic import TopicResource
from kafscale.text.formatting import format_time

OFFSETS_MS: Final = 30_000

Leader = Callable[[str, int], tuple[int, int]]
"""The leader of a partition, or `NO_BROKER`, and its leader epoch."""


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
    resource: TopicResource,
    before: TopicStatus,
    now_ms: int,
    *,
    phase: str,
    conditions: Sequence[Condition],
    applied: AppliedStatus | None,
    topic_id: str,
    partitions: Sequence[PartitionStatus],
) -> TopicStatus:
    """Build a status; a condition with an unchanged status keeps its transition time."""
    former = [as_manifest(each) for each in before.conditions]
    return TopicStatus(
        phase=phase,
        observed_generation=resource.generation,
        topic_id=topic_id,
        partitions=list(partitions),
        applied=applied,
        conditions=to_conditions(
            to_status(conditions, former, format_time(now_ms, "seconds"), resource.generation)
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
