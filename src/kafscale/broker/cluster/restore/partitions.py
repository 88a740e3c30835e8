"""Repaired assignments and states of partitions after a metadata restore. Pure.

Invariants:

1. Every partition gets an owner whose session is over. So it is taken over like that of a failed
   broker, from segments and from all fenced streams. None is new, and none is fully rolled.
2. Leader epochs, which clients compare, and producer ids, which logs store, are higher than all
   that were used. Their values since the snapshot are unknown, so they continue from numbers that
   are derived from the clock and were never reached before, also if the same snapshot is restored
   twice. If the clock is wrong, they grow by a fixed step.
3. No offset below a log's start is assigned again, where an object shows that start; segments that
   are all deleted do not.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.planner import Owner
from kafscale.metadata.schema.model import Assignment, PartitionState, Topic
from kafscale.storage.formats.object_keys import INT32_MAX

NO_OWNER: Final[Owner] = (INT32_MAX, 0)
"""The owner of partitions without a known owner: a broker that never existed."""

CLOCK_EPOCH_MS: Final = 1_577_836_800_000
"""The beginning of 2020; leader epochs derived from the clock last for 68 years from then."""

LEADER_EPOCH_STEP: Final = 1000
PRODUCER_IDS_PER_SECOND: Final = 1 << 20
"""More than any cluster allocates; and 2**53, the limit of exact integers in JSON, is far away."""
PRODUCER_ID_STEP: Final = 1 << 30


def leader_epoch(before: int, now_ms: int) -> int:
    """A leader epoch that no client has seen."""
    return min(max(before + LEADER_EPOCH_STEP, _seconds(now_ms)), INT32_MAX)


def producer_id(before: int, now_ms: int) -> int:
    """A producer id from which on none was allocated."""
    return max(before + PRODUCER_ID_STEP, _seconds(now_ms) * PRODUCER_IDS_PER_SECOND)


def _seconds(now_ms: int) -> int:
    return max(now_ms - CLOCK_EPOCH_MS, 0) // 1000


def unowned_assignments(
    topic: Topic,
    assignments: Mapping[int, Assignment],
    live_sessions: Collection[Owner],
    now_ms: int,
) -> Iterator[Assignment]:
    """Assignments of a topic's partitions, each to an owner whose session is over."""
    for number in range(topic.partitions):
        before = assignments.get(number)
        owner = NO_OWNER if before is None else (before.broker_id, before.broker_epoch)
        broker_id, broker_epoch = NO_OWNER if owner in live_sessions else owner
        yield Assignment(
            topic=topic.name,
            topic_id=topic.id,
            partition=number,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            leader_epoch=leader_epoch(before.leader_epoch if before else 0, now_ms),
            fully_rolled=False,
            assigned_ms=now_ms,
        )


def with_start_offset(
    topic: Topic, partition: int, before: PartitionState | None, start_offset: int
) -> PartitionState | None:
    """The state of a partition whose log starts there; None if the state says that already."""
    state = before or PartitionState(
        topic=topic.name, topic_id=topic.id, partition=partition, leader_broker="", leader_epoch=0
    )
    if state.log_start_offset >= start_offset and state.rolled_end >= start_offset:
        return None
    return replace(
        state,
        log_start_offset=max(state.log_start_offset, start_offset),
        log_end_offset=max(state.log_end_offset, start_offset),
        high_watermark=max(state.high_watermark, start_offset),
        rolled_offset=max(state.rolled_end, start_offset),
    )
