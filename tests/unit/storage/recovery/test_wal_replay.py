"""WAL replay: all acknowledged records of fenced streams, once and in order."""

import asyncio
from random import Random

import pytest

from doubles import virtual_time
from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import StoreUnavailableError
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.recovery.wal_replay import PARALLEL_READS_MAX
from unit.storage.engines import (
    NAMESPACE,
    Epochs,
    append,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
)
from unit.storage.sessions import InterferingStore, crash_session, is_fence, key_of


def test_durable_records_are_recovered_and_offsets_continue():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b")
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0, 1]
        assert await append(engine, b"c") == 2

    simulate(scenario)


def test_objects_after_a_gap_are_ignored():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b", b"c")
        await store.delete([key_of(0, 2)])
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0]
        assert await is_fence(store, key_of(0, 2))
        assert await append(engine, b"d") == 1

    simulate(scenario)


def test_object_recreated_below_a_fence_hides_nothing():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b", b"c")
        revenant = bytes(await store.get(key_of(0, 1)))
        await open_engine(store, epochs)
        await store.delete([key_of(0, n) for n in range(3)])
        await store.put(key_of(0, 1), [revenant])
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0, 2]

    simulate(scenario)


@pytest.mark.parametrize(("damaged", "left"), [(1, [1, 2]), (2, [0, 2]), (3, [0, 1])])
def test_damaged_object_loses_only_its_own_records(damaged, left):
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b", b"c")
        data = bytearray(await store.get(key_of(0, damaged)))
        data[50] ^= 1
        await store.put(key_of(0, damaged), [data], create=False)
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == left
        assert await append(engine, b"d") == left[-1] + 1

    simulate(scenario)


def test_records_rolled_and_trimmed_meanwhile_are_not_missed():
    """It trims the WAL before it is read: the records are in segments."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        before = await open_engine(store, epochs)
        for value in (b"a", b"b"):
            await append(before, value)
        await roll(before)
        await append(before, b"c")  # It says that the others are trimmed.

        async def interfere() -> None:
            await before.trimmer.trim()

        engine = await open_engine(InterferingStore(store, "get", key_of(0, 1), interfere), epochs)
        assert await read_offsets(engine) == [0, 1, 2]

    simulate(scenario)


class DistantStore(MemoryObjectStore):
    """A store with slow reads, slower for older objects."""

    __slots__ = ("reads", "reads_max")

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms)
        self.reads = 0
        self.reads_max = 0

    async def get(self, key: str) -> memoryview:
        self.reads += 1
        self.reads_max = max(self.reads_max, self.reads)
        place = object_keys.parse_wal(NAMESPACE, key)
        assert place is not None
        await asyncio.sleep(1 / (1 + place.sequence))
        self.reads -= 1
        return await super().get(key)


def test_objects_are_read_concurrently_and_applied_in_order():
    async def scenario():
        store, epochs = DistantStore(), Epochs()
        count = 3 * PARALLEL_READS_MAX
        await crash_session(store, epochs, *(b"%d" % number for number in range(count)))
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == list(range(count))
        assert store.reads_max == PARALLEL_READS_MAX
        assert store.reads == 0

    simulate(scenario)


def test_reads_ahead_are_cancelled_when_one_fails():
    async def scenario():
        inner, epochs = memory_store(), Epochs()
        await crash_session(
            inner, epochs, *(b"%d" % number for number in range(2 * PARALLEL_READS_MAX))
        )
        store = FaultyObjectStore(inner, random=Random(0))
        store.rules = [Rule(fault=Fault.REFUSED, operations=frozenset({"get"}), keys=key_of(0, 3))]
        before = asyncio.all_tasks()
        with pytest.raises(StoreUnavailableError):
            await open_engine(store, epochs)
        assert asyncio.all_tasks() == before

    simulate(scenario)
