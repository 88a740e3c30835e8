"""WAL replay: all acknowledged records of fenced streams, once and in order."""

import asyncio
from random import Random

import pytest
from structlog.testing import capture_logs

from doubles import virtual_time
from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import StoreUnavailableError
from kafscale.records import batch
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.recovery.wal_replay import PARALLEL_READS_MAX
from unit.storage.engines import (
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
    topic,
    values_batch,
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


async def flip(store, key: str, position: int) -> bytes:
    data = bytearray(await store.get(key))
    data[position] ^= 1
    await store.put(key, [data], create=False)
    return bytes(data)


async def flip_record(store, key: str, batches_before: int = 0) -> bytes:
    """Flip a bit of a record in the first range of a WAL object, whose batches have one size."""
    first = wal_object.decode(key, await store.get(key)).ranges[0].position
    position = first + batches_before * len(values_batch([b"a"])) + batch.HEADER_BYTES + 1
    return await flip(store, key, position)


@pytest.mark.parametrize(("damaged", "left"), [(1, [1, 2]), (2, [0, 2]), (3, [0, 1])])
def test_damaged_object_loses_only_its_own_records(damaged, left):
    """The newest object was acknowledged like all others: its offsets are not used again."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b", b"c")
        data = await flip_record(store, key_of(0, damaged))
        for end_offset in (4, 5):
            engine = await open_engine(store, epochs)
            assert await read_offsets(engine) == left
            assert await append(engine, b"d") == end_offset - 1
            left.append(end_offset - 1)
            await roll(engine)
            log = engine.logs.get(TOPIC, 0)
            assert (log.tail.rolled_offset, log.end_offset) == (end_offset, end_offset)
            assert await read_offsets(engine) == left
            engine.close()
        assert await store.get(key_of(0, damaged)) == data
        (copy,) = [key for key in await keys(store) if object_keys.QUARANTINE_DIRECTORY in key]
        assert await store.get(copy) == data

    with capture_logs() as logs:
        simulate(scenario)
    assert {line["log_level"] for line in logs if line["event"] == "damaged WAL object"} == {
        "error"
    }
    (missing, *_) = [line for line in logs if line["event"] == "offsets missing"]
    assert (missing["from_offset"], missing["to_offset"]) == (damaged - 1, damaged)


def test_trailing_gap_is_rolled_with_the_records_before_it():
    """Otherwise the log could not be transferred until the next append."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b")
        await flip_record(store, key_of(0, 2))
        engine = await open_engine(store, epochs)
        log = engine.logs.get(TOPIC, 0)
        await roll(engine)
        assert (log.tail.rolled_offset, log.end_offset) == (2, 2)

    simulate(scenario)


def test_undamaged_batches_of_a_damaged_object_are_kept():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await open_engine(store, epochs, partitions=topic(2))
        log = engine.logs.get(TOPIC, 0)
        appended = [
            engine.logs.get(TOPIC, partition).append(values_batch([value]), 0)
            for partition, value in ((0, b"a"), (0, b"b"), (0, b"c"), (1, b"d"))
        ]
        await asyncio.gather(*(one.durable for one in appended))
        assert log.high_watermark == 3
        engine.close()
        await flip_record(store, key_of(0, 1), 1)
        engine = await open_engine(store, epochs, partitions=topic(2))
        assert await read_offsets(engine, 0) == [0, 2]
        assert await read_offsets(engine, 0, partition=1) == [0]
        assert await append(engine, b"e") == 3

    simulate(scenario)


def test_damage_anywhere_in_an_object_never_moves_offsets():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a", b"b")
        data = bytes(await store.get(key_of(0, 2)))
        first = wal_object.decode(key_of(0, 2), data).ranges[0].position
        damages = [data[:length] for length in range(first, len(data))]
        damages.remove(data[: wal_object.EMPTY_BYTES])  # It is taken for one without records.
        for position in range(len(data)):
            damaged = bytearray(data)
            damaged[position] ^= 1
            damages.append(bytes(damaged))
        for damaged in damages:
            copied = memory_store()
            for key in await keys(store):
                await copied.put(key, [await store.get(key)])
            await copied.put(key_of(0, 2), [damaged], create=False)
            next_epochs = Epochs()
            next_epochs.last = epochs.last
            engine = await open_engine(copied, next_epochs)
            assert await append(engine, b"c") == 2, damaged
            engine.close()

    simulate(scenario)


def test_response_that_was_damaged_on_the_way_is_read_again():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await crash_session(store, epochs, b"a")
        data = bytes(await store.get(key_of(0, 1)))
        await store.put(key_of(0, 1), [data[:-1]], create=False)

        class HealingStore:
            def __getattr__(self, name: str):
                return getattr(store, name)

            async def get(self, key: str) -> memoryview:
                result = await store.get(key)
                if key == key_of(0, 1):
                    await store.put(key, [data], create=False)
                return result

        engine = await open_engine(HealingStore(), epochs)
        assert await read_offsets(engine) == [0]
        assert not [key for key in await keys(store) if object_keys.QUARANTINE_DIRECTORY in key]

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
