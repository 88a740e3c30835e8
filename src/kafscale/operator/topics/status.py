"""The status of a topic's resource: how it is put together, and when it is worth writing. Pure.

The laws: an end offset that nobody tells at the moment stays what it was, as long as it is of the
same topic. Offsets move all the time, so they alone are written every `OFFSETS_MS` at the most;
everything else is written when it changes, and what has not changed is never written.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kafscale.control_plane.partition import Partition
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.metadata.schema.model import Topic
from kafscale.operator.conditions import Condition, written
from kafscale.operator.spec.status import (
    AppliedStatus,
    PartitionStatus,
    TopicStatus,
    as_conditions,
    as_manifest,
)
from kafscale.operator.spec.topic import TopicResource

OFFSETS_MS: Final = 30_000

Leader = Callable[[str, int], tuple[int, int]]
"""The broker that serves a partition of a topic, or `NO_BROKER`, and its leader epoch."""


def read(status: Mapping[str, Any]) -> TopicStatus:
    """What a resource says about itself; nothing, where that makes no sense."""
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
    found = []
    for number in range(topic.partitions):
        leader_id, _ = leader(topic.name, number)
        end = log_end_offsets.get(Partition(topic.name, number), known.get(number))
        found.append(
            PartitionStatus(
                id=number,
                leader="" if leader_id == NO_BROKER else str(leader_id),
                log_end_offset=end,
            )
        )
    return found


def assembled(
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
    """A whole status; a condition that says what it said before is as old as it was."""
    former = [as_manifest(each) for each in before.conditions]
    return TopicStatus(
        phase=phase,
        observed_generation=resource.generation,
        topic_id=topic_id,
        partitions=list(partitions),
        applied=applied,
        conditions=as_conditions(written(conditions, former, moment(now_ms), resource.generation)),
    )


def is_worth_writing(before: TopicStatus, after: TopicStatus, since_ms: int | None) -> bool:
    """Whether to write a status; `since_ms` is how long ago that was last done, if it is known."""
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
    """Why a condition is what it is; empty where there is no such condition."""
    return next((each.reason for each in status.conditions if each.type == condition), "")


def moment(now_ms: int) -> str:
    """A moment as Kubernetes writes it.

    >>> moment(1_750_000_000_999)
    '2025-06-15T15:06:40Z'
    """
    return datetime.fromtimestamp(now_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
