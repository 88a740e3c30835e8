"""Readers of committed records while segments are deleted or replaced between their steps."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.broker.shared.fetch_reads import from_segments
from kafscale.errors import OffsetOutOfRangeError
from kafscale.storage.formats import object_keys
from unit.storage.engines import NAMESPACE, TOPIC, append, memory_store, open_engine, roll, simulate
from unit.storage.sessions import FakeMetadataStore
from unit.storage.staged_segments import PREFIX, stage_merged
from unit.storage.transactions import ABORT, COMMIT, Producer, Written, all_committed


async def opened(store, metadata=None):
    metadata = metadata or FakeMetadataStore()
    engine = await open_engine(store, partitions=[metadata.to_open()], save_state=metadata.save)
    return engine, engine.logs.get(TOPIC, 0)


def evict(log):
    while log.tail.evict():
        pass


async def crash_during_merge(store, engine, log):
    """Merge all segments, and crash before the others are marked as merged."""
    await stage_merged(engine, log)
    store.rules = [Rule(fault=Fault.REFUSED, keys="*merged-*")]
    swap = asyncio.ensure_future(engine.swap_segments(log, PREFIX))
    await asyncio.sleep(30)
    assert not swap.done()
    engine.close()
    store.rules = []


def test_aborted_records_are_not_returned_if_their_segment_is_deleted_meanwhile():
    async def scenario():
        engine, log = await opened(memory_store())
        producer = Producer(1, Written())
        await producer.send(engine, b"aborted")
        await producer.end(engine, ABORT)
        await roll(engine)
        await append(engine, b"plain")
        await roll(engine)
        evict(log)

        async def delete_before(*arguments):
            await engine.retention.delete_records(log, 2)
            await engine.retention.enforce(log)
            return await find(*arguments)

        find = engine.reader.aborted_transactions
        engine.reader.aborted_transactions = delete_before
        with pytest.raises(OffsetOutOfRangeError):
            await from_segments(engine.reader, log, 0, 1 << 20, first=True, is_committed=True)

    simulate(scenario)


def test_segments_are_merged_after_a_crash_in_the_middle_of_a_merge():
    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        metadata = FakeMetadataStore()
        engine, log = await opened(store, metadata)
        written = Written()
        producer = Producer(1, written)
        for number in range(3):
            await producer.send(engine, b"aborted")
            await producer.end(engine, ABORT)
            await producer.send(engine, b"%d" % number)
            await producer.end(engine, COMMIT)
            await roll(engine)
        await crash_during_merge(store, engine, log)
        engine, log = await opened(store, metadata)
        assert len(log.segments) == 3
        await stage_merged(engine, log)
        await engine.swap_segments(log, PREFIX)
        evict(log)
        assert len(log.segments) == 1
        assert await all_committed(engine, log, 0) == written.committed

    simulate(scenario)


@pytest.mark.parametrize("is_open", [False, True])
def test_index_is_lost_after_a_crash_in_the_middle_of_a_merge(is_open):
    """The merged segment's index speaks of its own end, not of where the next segment begins."""

    async def scenario():
        store = FaultyObjectStore(memory_store(), random=Random(0))
        metadata = FakeMetadataStore()
        engine, log = await opened(store, metadata)
        written = Written()
        producer, other = Producer(1, written), Producer(2, written)
        await producer.send(engine, b"aborted")
        await append(engine, b"plain")
        await roll(engine)
        await producer.send(engine, b"aborted, too")
        await producer.end(engine, ABORT)
        await producer.send(engine, b"committed")
        await other.send(engine, b"committed, too")
        await roll(engine)
        if not is_open:
            await producer.end(engine, COMMIT)
            await other.end(engine, COMMIT)
        written.committed[1] = b"plain"
        second = log.segments[1].base_offset
        last_stable_offset = log.last_stable_offset
        await crash_during_merge(store, engine, log)
        await store.delete([object_keys.index_key(NAMESPACE, log.directory, 0, second)])
        engine, log = await opened(store, metadata)
        evict(log)
        assert len(log.segments) == 2
        assert log.last_stable_offset == last_stable_offset
        for start in range(last_stable_offset):
            expected = {at: value for at, value in written.committed.items() if at >= start}
            assert await all_committed(engine, log, start) == expected

    simulate(scenario)


class SlowResponse:
    """A store whose response to one GET waits."""

    def __init__(self, inner):
        self._inner = inner
        self.slow_key = ""
        self.is_waiting = asyncio.Event()
        self.may_continue = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def get(self, key):
        data = await self._inner.get(key)
        if key == self.slow_key:
            self.slow_key = ""
            self.is_waiting.set()
            await self.may_continue.wait()
        return data


class SlowMetadataStore(FakeMetadataStore):
    """A metadata store that may have to wait before it saves a state."""

    def __init__(self):
        super().__init__()
        self.is_saving = asyncio.Event()
        self.may_save = asyncio.Event()
        self.may_save.set()

    async def save(self, log):
        if not self.may_save.is_set():
            self.is_saving.set()
        await self.may_save.wait()
        await super().save(log)


def test_what_a_replaced_segment_said_is_not_cached():
    """A reader gets the index after the swap has dropped what was cached of the segment."""

    async def scenario():
        store = SlowResponse(memory_store())
        metadata = SlowMetadataStore()
        engine, log = await opened(store, metadata)
        written = Written()
        first, second = Producer(1, written), Producer(2, written)
        await first.send(engine, b"committed")
        await roll(engine)
        await first.end(engine, COMMIT)
        await second.send(engine, b"aborted")
        await second.end(engine, ABORT)
        await roll(engine)
        await first.send(engine, b"aborted")
        await first.end(engine, ABORT)
        await roll(engine)
        evict(log)
        await stage_merged(engine, log, from_number=1)
        metadata.may_save.clear()
        swap = asyncio.ensure_future(engine.swap_segments(log, PREFIX))
        await metadata.is_saving.wait()  # It has read the indexes, and written nothing.
        engine.reader.forget(f"{NAMESPACE}/")  # Evicted: readers of other logs use the cache, too.
        place = (NAMESPACE, log.directory, 0)
        store.slow_key = object_keys.index_key(*place, log.segments[1].base_offset)
        reading = asyncio.ensure_future(engine.reader.aborted_transactions(log, 0, 1))
        await store.is_waiting.wait()
        metadata.may_save.set()
        await swap
        store.may_continue.set()
        await reading
        assert len(log.segments) == 2
        assert await all_committed(engine, log, 0) == written.committed

    simulate(scenario)
