"""Swaps: segments are replaced during reads, and no crash loses a record."""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import FencedError, InvalidRequestError, NotOwnerError, StoreUnavailableError
from kafscale.records import iterate, split
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.log import timestamp_lookup
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.segments.segment_writer import RollReason
from kafscale.storage.wal.streams import Streams
from unit.storage.engines import (
    BROKER_ID,
    NAMESPACE,
    TOPIC,
    Epochs,
    append,
    keys,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
    to_open,
)
from unit.storage.sessions import OTHER_ID, THIRD_ID, FakeMetadataStore, InterferingStore
from unit.storage.staged_segments import (
    COUNT,
    PLANS,
    PREFIX,
    SIZES,
    bases_after,
    engine_with_segments,
    stage,
    stored_batches,
    values,
    values_of,
)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_staged_segments_replace_their_sources(plan):
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await engine_with_segments(store, metadata)
        assert len(await read_offsets(engine)) == COUNT  # Everything is cached.
        size_bytes = log.segments.total_bytes
        await stage(store, *plan)
        result = await engine.swap_segments(log, PREFIX)
        new = range(plan[0][0], plan[-1][-1] + 1)
        assert (result.start_offset, result.end_offset) == (new.start, new.stop)
        assert result.count_after == len(plan)
        assert log.segments.total_bytes == size_bytes + result.bytes_after - result.bytes_before
        assert await values_of(engine) == values(new)
        bases = bases_after(plan)
        assert [actual.base_offset for actual in log.segments] == bases
        assert await keys(store, ".kfs") == [
            object_keys.segment_key(NAMESPACE, TOPIC, 0, base) for base in bases
        ]
        assert len(await keys(store, ".index")) == len(bases)
        assert [key for key in await keys(store) if key.startswith(PREFIX)] == []
        engine.close()
        engine = await open_engine(store, partitions=[metadata.to_open()])
        assert await values_of(engine) == values(new)
        again = {"producer_id": 1, "producer_epoch": 0, "base_sequence": COUNT - 1}
        assert await append(engine, b"11", **again) == COUNT - 1, "producers are remembered"

    simulate(scenario)


def test_indexes_match_and_timestamps_are_found_after_a_swap():
    async def scenario():
        store = memory_store()
        engine, log = await engine_with_segments(store)
        old = await engine.reader.index(log, log.segments[-1])
        await stage(store, *PLANS["mixed"])
        await engine.swap_segments(log, PREFIX)
        for result in log.segments:
            place = (NAMESPACE, TOPIC, 0, result.base_offset)
            entries = await engine.reader.index(log, result)
            batches = segment.read("", await store.get(object_keys.segment_key(*place))).batches
            index.verify(object_keys.index_key(*place), entries, batches)
            assert entries.prior_max_timestamp_ms is not None
        assert (await engine.reader.index(log, log.segments[-1])).sections == old.sections
        newest = await timestamp_lookup.offset_of_max_timestamp(engine.reader, log)
        assert newest is not None
        assert (
            await timestamp_lookup.offset_for_timestamp(engine.reader, log, newest.timestamp_ms)
        ) == newest

    simulate(scenario)


class Crashing:
    """A store that crashes the broker before its nth change."""

    def __init__(self, inner, changes_left: int) -> None:
        self._inner = inner
        self.changes_left = changes_left

    def __getattr__(self, name: str):
        request = getattr(self._inner, name)
        if name not in {"put", "replace", "delete"}:
            return request

        async def changed(*arguments, **options):
            if self.changes_left <= 0:
                await asyncio.Event().wait()
            self.changes_left -= 1
            return await request(*arguments, **options)

        return changed


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_swap_survives_a_crash_at_any_step_and_can_be_repeated(plan):
    async def scenario(changes: int) -> bool:
        inner, metadata = memory_store(), FakeMetadataStore()
        store = Crashing(inner, 1 << 30)
        engine, log = await engine_with_segments(store, metadata)
        await stage(inner, *plan)
        store.changes_left = changes
        swap = asyncio.ensure_future(engine.swap_segments(log, PREFIX))
        await asyncio.wait([swap], timeout=1)
        is_over = swap.done()
        engine.close()
        await asyncio.gather(swap, return_exceptions=True)
        assert [one.base_offset for one in await stored_batches(inner)] == list(range(COUNT))
        engine = await open_engine(inner, partitions=[metadata.to_open()], save_state=metadata.save)
        log = engine.logs.get(TOPIC, 0)
        for bytes_max in (1, 250, 1 << 30):
            await read_in_steps(engine, log, bytes_max)
        if not is_over:
            await engine.swap_segments(log, PREFIX)
        assert await values_of(engine) == values(range(plan[0][0], plan[-1][-1] + 1))
        assert [result.base_offset for result in log.segments] == bases_after(plan)
        return is_over

    changes = 0
    while not simulate(lambda: scenario(changes)):  # noqa: B023
        changes += 1
    assert changes > 2 * len(plan)


async def read_in_steps(engine, log, bytes_max: int) -> None:
    """Read every offset once and in order, with any read size."""
    offset, seen = 0, []
    while offset < COUNT:
        result, following = await engine.reader.read(log, offset, bytes_max, first=True)
        seen += [one.base_offset for one in split(b"".join(result))]
        assert following > offset
        offset = following
    assert seen == list(range(COUNT))


def test_readers_see_the_state_before_or_after_a_swap():
    async def scenario():
        store = FaultyObjectStore(
            memory_store(), [Rule(fault=Fault.SLOW, seconds=(0.001, 0.2))], random=Random(5)
        )
        engine, log = await engine_with_segments(store)
        is_over = False

        async def read() -> None:
            while not is_over:
                offset = 0
                while offset < COUNT:
                    result, following = await engine.reader.read(log, offset, 300, first=True)
                    batches = split(b"".join(result))
                    assert [one.base_offset for one in batches] == list(range(offset, following))
                    for one in batches:
                        (record,) = iterate(one)
                        assert record.value in {b"%d" % record.offset, b"new %d" % record.offset}
                    offset = following
                engine.reader.forget(object_keys.partition_prefix(NAMESPACE, TOPIC, 0))

        readers = [asyncio.ensure_future(read()) for _ in range(5)]
        for plan in ("same", "the end", "mixed", "merge", "merge all", "merge all"):
            await stage(store, *PLANS[plan])
            await engine.swap_segments(log, PREFIX)
        assert len(log.segments) == 1
        is_over = True
        await asyncio.gather(*readers)

    simulate(scenario)


@pytest.mark.parametrize("plan", ["merge", "same"])
def test_reader_retries_while_segments_are_swapped(plan):
    async def scenario():
        inner = memory_store()
        swaps = []

        async def interfere() -> None:
            await stage(inner, *PLANS[plan])
            swaps.append(await engine.swap_segments(log, PREFIX))

        key = object_keys.segment_key(NAMESPACE, TOPIC, 0, 0)
        store = InterferingStore(inner, "get_range", key, interfere)
        engine, log = await engine_with_segments(store)
        await engine.reader.index(log, log.segments[0])
        new = range(PLANS[plan][-1][-1] + 1)
        assert await values_of(engine) == values(new)
        assert len(swaps) == 1

    simulate(scenario)


def test_swap_continues_when_the_requester_disconnects():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        engine, log = await engine_with_segments(store)
        await stage(store, range(10))
        store.rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"put"}))]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await engine.swap_segments(log, PREFIX)
        reading = asyncio.ensure_future(values_of(engine))
        await asyncio.sleep(1)
        assert not reading.done(), "the stored state is unknown"
        store.rules = []
        await asyncio.sleep(60)
        assert await reading == values(range(10))

    simulate(scenario)


def test_leftovers_of_a_failed_swap_do_not_block_another():
    async def scenario():
        inner, metadata = memory_store(), FakeMetadataStore()
        engine, log = await engine_with_segments(inner, metadata)
        await stage(inner, *PLANS["pairs"])
        saved = metadata.save

        async def failing(_) -> None:
            metadata.save_count += 1
            if metadata.save_count == 2:
                raise StoreUnavailableError("metadata store unavailable")

        metadata.save_count = 0
        engine._swapper._save_state = failing
        with pytest.raises(StoreUnavailableError):
            await engine.swap_segments(log, PREFIX)
        assert await values_of(engine) == values(range(6, COUNT)), "the second is replaced"
        engine._swapper._save_state = saved
        await inner.delete([key for key in await keys(inner) if key.startswith(PREFIX)])
        await stage(inner, range(COUNT))
        await engine.swap_segments(log, PREFIX)
        engine.close()
        engine = await open_engine(inner, partitions=[metadata.to_open()])
        assert await values_of(engine) == values(range(COUNT))

    simulate(scenario)


def test_late_roll_of_a_former_owner_stays_hidden_after_a_merge():
    async def scenario():
        store, metadata, epochs = memory_store(), FakeMetadataStore(), Epochs()
        old = await open_engine(
            store, epochs, partitions=[metadata.to_open()], save_state=metadata.save
        )
        for number in range(6):
            await append(old, b"%d" % number)
            if number == 2:
                await roll(old)
        await Streams(store, NAMESPACE, clock_ms).fence(BROKER_ID, epochs.last)
        new = await open_engine(
            store, epochs, OTHER_ID, partitions=[metadata.to_open()], save_state=metadata.save
        )
        await roll(new)
        for number in range(6, 10):
            await append(new, b"%d" % number)
        await roll(new)
        await stage(store, range(10))
        await new.swap_segments(new.logs.get(TOPIC, 0), PREFIX)
        assert len(await keys(store, ".kfs")) == 1
        late = old.logs.get(TOPIC, 0)
        await old.roll_scheduler.roll(late, RollReason.AGE)
        assert len(await keys(store, ".kfs")) == 2, "the former owner's segment is there again"
        new.end_session()
        await Streams(store, NAMESPACE, clock_ms).fence(OTHER_ID, epochs.last)
        third = await open_engine(
            store, epochs, THIRD_ID, partitions=[metadata.to_open()], save_state=metadata.save
        )
        assert await values_of(third) == values(range(10), 10)
        log = third.logs.get(TOPIC, 0)
        assert [each.base_offset for each in log.segments] == [0]
        await stage(store, range(10))
        await third.swap_segments(log, PREFIX)
        assert len(await keys(store, ".kfs")) == 1, "the next swap deletes it"

    simulate(scenario)


@pytest.mark.parametrize("seconds", [0.5, 60, 3600])
def test_changes_that_take_effect_late_do_not_undo_later_ones(seconds):
    """Every PUT and DELETE of swaps and rolls is tried twice; the first try lands much later."""

    async def scenario():
        inner, metadata = memory_store(), FakeMetadataStore()
        faulty = FaultyObjectStore(inner, random=Random(seconds))
        store = RetryingObjectStore(faulty, attempts_max=3, random=Random(1))
        engine, log = await engine_with_segments(store, metadata)
        faulty.rules = [
            Rule(
                fault=Fault.APPLIED_LATER,
                share=0.5,
                operations=frozenset({"put", "delete"}),
                keys=f"{NAMESPACE}/{TOPIC}/*",
                seconds=(seconds / 2, seconds),
            )
        ]
        for plan in ("same", "mixed", "pairs", "merge all", "merge all"):
            if plan != "pairs" or {0, 6} <= {each.base_offset for each in log.segments}:
                await stage(inner, *PLANS[plan])
                await engine.swap_segments(log, PREFIX)
            await append(engine, b"more")
            while log.tail.unrolled_bytes:
                with suppress(StoreUnavailableError):
                    await roll(engine)
        expected = await values_of(engine)
        faulty.rules = []
        await faulty.wait_for_late_writes()
        engine.reader.forget(object_keys.partition_prefix(NAMESPACE, TOPIC, 0))
        assert await values_of(engine) == expected
        engine.close()
        engine = await open_engine(inner, partitions=[metadata.to_open()])
        assert await values_of(engine) == expected
        for number in range(len(log.segments)):
            entries = await engine.reader.index(log, log.segments[number])
            assert entries.segment_bytes == log.segments[number].size_bytes

    simulate(scenario)


def test_late_deletion_by_retention_does_not_hit_a_merged_segment():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await engine_with_segments(store, metadata)
        log.advance_start(5)
        await stage(store, range(10))
        with pytest.raises(InvalidRequestError, match="below the log start offset"):
            await engine.swap_segments(log, PREFIX)
        assert len(await keys(store, ".kfs")) == len(SIZES) + 1

    simulate(scenario)


def test_only_the_owner_swaps():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await engine_with_segments(store, metadata)
        await stage(store, range(10))
        metadata.to_open()  # Another broker owns it now.
        before = await keys(store)
        with pytest.raises(FencedError):
            await engine.swap_segments(log, PREFIX)
        assert await keys(store) == before
        log.close()
        with pytest.raises(NotOwnerError):
            await engine.swap_segments(log, PREFIX)

    simulate(scenario)


def test_log_is_not_released_during_a_swap():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, log = await engine_with_segments(store, metadata)
        await stage(store, range(10))
        swap = asyncio.ensure_future(engine.swap_segments(log, PREFIX))
        for _ in range(3):
            await asyncio.sleep(0)
        assert log.segments_lock.locked()
        await engine.release(log)
        assert [result.base_offset for result in log.segments] == [0, 10]
        await swap
        await stage(store, range(10))
        with pytest.raises(NotOwnerError):
            await engine.swap_segments(log, PREFIX)
        successor = await open_engine(
            store, broker_id=OTHER_ID, partitions=[to_open(leader_epoch=1, fully_rolled=True)]
        )
        assert await values_of(successor) == values(range(10))

    simulate(scenario)


def test_appends_and_rolls_continue_during_a_swap():
    async def scenario():
        store = FaultyObjectStore(
            memory_store(), [Rule(fault=Fault.SLOW, seconds=(0.1, 0.2))], random=Random(5)
        )
        engine, log = await engine_with_segments(store)
        await stage(store, *PLANS["the end"])
        swap = asyncio.ensure_future(engine.swap_segments(log, PREFIX))
        for offset in range(COUNT, COUNT + 3):
            assert await append(engine, b"%d" % offset) == offset
            await roll(engine)
        await swap
        assert await values_of(engine) == values(range(6, COUNT), COUNT + 3)

    simulate(scenario)
