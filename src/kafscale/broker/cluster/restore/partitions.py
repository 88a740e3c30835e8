"""What restored metadata have to say of partitions, so that owners find all records again. Pure.

The laws:

1. Every partition has an owner that is over: then it is taken over like that of a broker that died,
   from segments and from all streams with a fence. None is new, and none was left clean.
2. What only ever grows has grown: leader epochs, which clients compare, and the ids of producers,
   which logs remember. How far they had come since the snapshot nobody knows, but time is what no
   snapshot takes back: they go on from numbers that follow from the clock, which were not reached
   before, also when the same snapshot is restored twice. Should the clock be wrong, they grow by a
   step nevertheless.
3. No offset below the start of a log is given out again, where an object tells that start: segments
   that are all deleted do not.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.planner import Owner
from kafscale.metadata.schema.model import Assignment, PartitionState, Topic
from kafscale.storage.formats.object_keys import INT32_MAX

NOBODY: Final[Owner] = (INT32_MAX, 0)
"""The owner of what no metadata know an owner of: a broker that there never was."""

COUNTED_FROM_MS: Final = 1_577_836_800_000
"""The beginning of 2020; leader epochs that follow from the clock last for 68 years from then."""

LEADER_EPOCH_STEP: Final = 1000
PRODUCER_IDS_PER_SECOND: Final = 1 << 20
"""More than any cluster gives out; and 2**53, up to where JSON has whole numbers, is far away."""
PRODUCER_ID_STEP: Final = 1 << 30


def leader_epoch(before: int, now_ms: int) -> int:
    """A leader epoch that no client has heard of."""
    return min(max(before + LEADER_EPOCH_STEP, _seconds(now_ms)), INT32_MAX)


def producer_id(before: int, now_ms: int) -> int:
    """The id of a producer from which on none was given out."""
    return max(before + PRODUCER_ID_STEP, _seconds(now_ms) * PRODUCER_IDS_PER_SECOND)


def _seconds(now_ms: int) -> int:
    return max(now_ms - COUNTED_FROM_MS, 0) // 1000


def orphans(
    topic: Topic, assignments: Mapping[int, Assignment], living: Collection[Owner], now_ms: int
) -> Iterator[Assignment]:
    """The assignments of a topic's partitions, each to an owner that is over."""
    for number in range(topic.partitions):
        before = assignments.get(number)
        owner = NOBODY if before is None else (before.broker_id, before.broker_epoch)
        broker_id, broker_epoch = NOBODY if owner in living else owner
        yield Assignment(
            topic=topic.name,
            partition=number,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            leader_epoch=leader_epoch(before.leader_epoch if before else 0, now_ms),
            fully_rolled=False,
            assigned_ms=now_ms,
        )


def started(
    topic: Topic, partition: int, before: PartitionState | None, start_offset: int
) -> PartitionState | None:
    """The state of a partition whose log starts there; None if it says so, or more, already."""
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
