"""Staged segments are validated before a swap changes anything."""

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.segment_list import SegmentList
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.segments.staging import StagedSegment, segments_to_replace
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    keys,
    log_settings,
    memory_store,
    simulate,
)
from unit.storage.staged_segments import PREFIX, engine_with_segments, stage, values, values_of


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ([], "no staged segments"),
        ([[1, 2]], "do not span whole segments"),
        ([[0, 1]], "do not span whole segments"),
        ([range(3), range(6, 10)], "gap in staged segments"),
        ([range(2), range(2, 6)], r"begin at \[2\], where no segment"),
        ([range(6, 14)], "do not span whole segments"),
        ([range(20, 22)], "do not span whole segments"),
    ],
)
def test_invalid_staged_segments_are_rejected_without_changes(plan, reason):
    async def scenario():
        store = memory_store()
        engine, log = await engine_with_segments(store)
        await stage(store, *plan)
        before = await keys(store)
        with pytest.raises(InvalidRequestError, match=reason):
            await engine.swap_segments(log, PREFIX)
        assert await keys(store) == before
        assert await values_of(engine) == values(range(0))

    simulate(scenario)


class CountedList(SegmentList):
    """Counts how many segments are looked at."""

    __slots__ = ("count",)

    def __getitem__(self, number):
        self.count += 1
        return super().__getitem__(number)


def test_a_swap_does_not_look_at_all_segments_of_a_log():
    """A log may have hundreds of thousands: one turn of the event loop would take 70 ms."""
    segments = CountedList()
    segments.count = 0
    for base in range(0, 10_000, 10):
        segments.append(base, base + 10, 100)
    log = PartitionLog(
        TOPIC,
        TOPIC_ID,
        0,
        settings=log_settings(),
        segments=segments,
        memory=TailMemory(),
        leader_epoch=0,
    )
    new = [StagedSegment("new", 500, 520, 1, 1, 1)]
    assert [each.base_offset for each in segments_to_replace(log, new)] == [500, 510]
    assert segments.count < 10


def test_segments_that_have_changed_since_the_job_read_them_are_not_replaced():
    async def scenario():
        store = memory_store()
        engine, log = await engine_with_segments(store)
        sources = (await keys(store, ".kfs"))[:2]
        read = [(await read_segment_footer(store, key)).checksum for key in sources]
        await stage(store, range(3), range(3, 6))
        for wrong in ([read[0], read[1] ^ 1], read[:1], [*read, 1]):
            with pytest.raises(InvalidRequestError, match="changed since the job"):
                await engine.swap_segments(log, PREFIX, wrong)
        assert await values_of(engine) == values(range(0))
        await engine.swap_segments(log, PREFIX, read)
        assert await values_of(engine) == values(range(6))

    simulate(scenario)


@pytest.mark.parametrize("way", ["damaged", "misnamed", "garbage", "another partition's", "live"])
def test_objects_of_other_partitions_are_rejected(way):
    async def scenario():
        store = memory_store()
        engine, log = await engine_with_segments(store)
        await stage(store, range(3))
        prefix = PREFIX
        data = bytes(await store.get(f"{PREFIX}segment-{0:020d}.kfs"))
        if way == "damaged":
            await store.put(f"{PREFIX}segment-{0:020d}.kfs", [data[:-1]], create=False)
        elif way == "misnamed":
            await store.put(f"{PREFIX}segment-{3:020d}.kfs", [data])
        elif way == "garbage":
            await store.put(f"{PREFIX}readme", [b"hello"])
        elif way == "live":
            prefix = object_keys.partition_prefix(NAMESPACE, TOPIC, 0)
        else:
            prefix = object_keys.staging_prefix(NAMESPACE, "job", TOPIC, 1)
            await store.put(f"{prefix}segment-{0:020d}.kfs", [data])
        with pytest.raises(InvalidRequestError):
            await engine.swap_segments(log, prefix)
        assert await values_of(engine) == values(range(0))

    simulate(scenario)
