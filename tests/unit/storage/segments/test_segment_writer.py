"""The segment writer: creates segments, adopts its own, and replaces only foreign ones."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import NotOwnerError
from kafscale.records import Codec
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.segments.segment_writer import RollReason
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    TOPIC_ID,
    Epochs,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    read_offsets,
    roll,
    simulate,
    topic,
    values_batch,
)
from unit.storage.samples import batch

PUT = frozenset({"put"})


def key_of(base_offset: int, make=object_keys.segment_key) -> str:
    return make(NAMESPACE, TOPIC, 0, base_offset)


async def last_offset(store, base_offset: int) -> int:
    key = key_of(base_offset)
    return segment.read(key, await store.get(key)).footer.last_offset


def test_roll_writes_a_segment_and_its_index():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store)
        for value in (b"a", b"b"):
            await append(engine, value)
        await roll(engine)
        records = segment.read(key_of(0), await store.get(key_of(0)))
        assert [found_batch.base_offset for found_batch in records.batches] == [0, 1]
        key = key_of(0, object_keys.index_key)
        entries = index.decode(key, await store.get(key))
        index.verify(key, entries, records.batches)
        assert {b"PROD", b"EPOC"} <= set(entries.sections)
        log = engine.logs.get(TOPIC, 0)
        assert (log.tail.rolled_offset, log.tail.unrolled_bytes) == (2, 0)
        assert log.oldest_unrolled_ms is None

    simulate(scenario)


async def append_transaction(engine, producer_id: int) -> int:
    """Append the first batch of a transaction; return its base offset."""
    log = engine.logs.get(TOPIC, 0)
    guard = log.start_verification(producer_id, 0, 0, adds_partition=False)
    view = values_batch(
        [b"v"], producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )
    appended = log.append(view, 1000, guard=guard)
    await appended.durable
    return appended.base_offset


class PutOrderStore(MemoryObjectStore):
    """Collects the names of written objects, without indexes and the WAL."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.names: list[str] = []

    async def put(self, key, parts, *, create=True):
        await super().put(key, parts, create=create)
        if not key.endswith((".index", ".kfw")):
            self.names.append(key.rpartition("/")[-1])


def test_the_object_for_transactions_precedes_the_first_segment_that_has_some():
    async def scenario():
        store = PutOrderStore()
        engine = await open_engine(store)
        store.names.clear()
        await append(engine, b"plain")
        await roll(engine)
        for producer_id in (7, 8):
            await append_transaction(engine, producer_id)
            await roll(engine)
        first, *later = [object_keys.segment_name(base_offset) for base_offset in range(3)]
        assert store.names == [first, object_keys.TRANSACTIONS_NAME, *later]

    simulate(scenario)


@pytest.mark.parametrize("suffix", ["kfs", "index"])
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.RESPONSE_LOST, Fault.APPLIED_LATER])
def test_failed_put_is_retried(suffix, fault):
    """N-05: nothing is lost and no orphan is left."""

    async def scenario():
        rule = Rule(fault=fault, operations=PUT, keys=f"*.{suffix}", times_max=3, seconds=(0.1, 3))
        inner = memory_store()
        store = FaultyObjectStore(inner, [rule], random=Random(0))
        engine = await open_engine(store)
        running = asyncio.create_task(engine.roll_scheduler.run())
        log = engine.logs.get(TOPIC, 0)
        for number, value in enumerate((b"a", b"b")):
            await append(engine, value)
            engine.roll_scheduler.schedule_roll(log, RollReason.EXPLICIT)
            await asyncio.sleep(30)
            assert log.tail.rolled_offset == number + 1
        running.cancel()
        await store.wait_for_late_writes()
        engine.close()
        assert await keys(inner, ".kfs") == [key_of(0), key_of(1)]
        assert len(await keys(inner, ".index")) == 2
        assert await read_offsets(await open_engine(inner)) == [0, 1]

    simulate(scenario)


@pytest.mark.parametrize("compression", [None, Codec.ZSTD])
def test_segment_of_an_earlier_session_is_adopted(compression):
    async def scenario():
        store, epochs = memory_store(), Epochs()
        partitions = topic(settings=log_settings(compression=compression))
        before = await open_engine(store, epochs, partitions=partitions)
        await append(before, b"a" * 500)
        after = await open_engine(store, epochs, partitions=partitions)
        await append(after, b"b" * 500)
        await roll(before)  # By a former owner, with one record.
        await roll(after)
        assert [await last_offset(store, n) for n in (0, 1)] == [0, 1]
        assert await read_offsets(after) == [0, 1]
        assert [result.base_offset for result in after.logs.get(TOPIC, 0).segments] == [0, 1]

    simulate(scenario)


def test_former_owner_does_not_overwrite_a_later_segment():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        before = await open_engine(store, epochs)
        await append(before, b"a")
        after = await open_engine(store, epochs)
        await append(after, b"b")
        await roll(after)
        await roll(before)
        assert await last_offset(store, 0) == 1
        assert before.logs.get(TOPIC, 0).tail.rolled_offset == 0

    simulate(scenario)


def test_foreign_segment_is_replaced_by_the_owner():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store)
        await append(engine, b"a")
        await append(engine, b"b")
        builder = segment.Builder(0, 4096, compression=None, prior_max_timestamp_ms=-1)
        builder.append(batch(0, 1, value=b"of a topic that was deleted"))
        await store.put(key_of(0), builder.finish().parts)
        await roll(engine)
        assert await last_offset(store, 0) == 1
        engine.close()
        assert await read_offsets(await open_engine(store)) == [0, 1]

    simulate(scenario)


def test_non_owner_replaces_nothing():
    async def scenario():
        async def refuse(_) -> None:
            raise NotOwnerError("it belongs to another broker")

        store = memory_store()
        engine = await open_engine(store, save_state=refuse)
        await append(engine, b"a")
        await store.put(key_of(0), [b"garbage"])
        await roll(engine)
        assert bytes(await store.get(key_of(0))) == b"garbage"

    simulate(scenario)


def test_topic_deleted_meanwhile_gets_no_segment():
    async def scenario():
        store = memory_store()
        engine = await open_engine(store)
        await append(engine, b"a")
        log = engine.logs.get(TOPIC, 0)
        engine.close_topic(TOPIC_ID, TOPIC, TOPIC)
        await engine.roll_scheduler.roll(log, RollReason.EXPLICIT)
        assert await keys(store, ".kfs") == []
        assert engine.memory.used_bytes == 0

    simulate(scenario)
