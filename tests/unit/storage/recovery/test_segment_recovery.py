"""`SegmentRecovery`: one listing, the last segment, and tolerance of damage."""

import asyncio

import pytest

from kafscale.storage.formats import object_keys, segment
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.storage.engines import (
    NAMESPACE,
    TOPIC,
    CountingStore,
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
)
from unit.storage.samples import batch

SEGMENTS_COUNT = 10_000


def key_of(base_offset: int, make=object_keys.segment_key) -> str:
    return make(NAMESPACE, TOPIC, 0, base_offset)


async def rolled(store, epochs, *, keeps_wal: bool = False) -> None:
    """A session that rolled three segments with one record each, and ended."""
    engine = await open_engine(store, epochs)
    for value in (b"a", b"b", b"c"):
        await append(engine, value, producer_id=5, producer_epoch=0, base_sequence=ord(value) - 97)
        await roll(engine)
    engine.close()
    if not keeps_wal:
        await store.delete(await keys(store, ".kfw"))


async def damage(store, key: str, kept_bytes: int) -> None:
    data = bytes(await store.get(key))
    await store.put(key, [data[:kept_bytes]], create=False)


@pytest.mark.parametrize("base_offset", [0, 1, 2])
@pytest.mark.parametrize("loss", ["missing", "torn"])
def test_lost_index_is_rebuilt(base_offset, loss):
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await rolled(store, epochs)
        key = key_of(base_offset, object_keys.index_key)
        await (store.delete([key]) if loss == "missing" else damage(store, key, 20))
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0, 1, 2]
        assert (await store.head(key)).size_bytes > 20
        assert await append(engine, b"d") == 3

    simulate(scenario)


@pytest.mark.parametrize("lost", [(2,), (1, 2), (0, 1, 2)])
def test_producer_state_is_recovered_without_an_index(lost):
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await rolled(store, epochs)
        await store.delete([key_of(base_offset, object_keys.index_key) for base_offset in lost])
        engine = await open_engine(store, epochs)
        again = await append(engine, b"c", producer_id=5, producer_epoch=0, base_sequence=2)
        assert again == 2

    simulate(scenario)


def test_last_segment_without_an_index_is_part_of_the_log():
    """N-05: the index PUT failed, and the broker with it."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        await rolled(store, epochs, keeps_wal=True)
        await store.delete([key_of(2, object_keys.index_key)])
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0, 1, 2]
        assert await append(engine, b"d") == 3
        await roll(engine)
        assert await keys(store, ".kfs") == [key_of(n) for n in range(4)]
        assert await keys(store, ".index") == [key_of(n, object_keys.index_key) for n in range(4)]

    simulate(scenario)


@pytest.mark.parametrize(("keeps_wal", "left"), [(True, [0, 1, 2]), (False, [0, 1])])
def test_truncated_last_segment_is_replaced_from_the_wal(keeps_wal, left):
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await rolled(store, epochs, keeps_wal=keeps_wal)
        await damage(store, key_of(2), 60)
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == left
        assert await append(engine, b"d") == left[-1] + 1
        await roll(engine)
        engine.close()
        assert await read_offsets(await open_engine(store, epochs)) == [*left, left[-1] + 1]

    simulate(scenario)


def test_whole_batches_of_a_damaged_segment_are_salvaged():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        first, second = batch(0, 2), batch(2, 2)
        builder = segment.Builder(0, 4096, compression=None, prior_max_timestamp_ms=-1)
        builder.append(first)
        builder.append(second)
        data = b"".join(builder.finish().parts)
        await store.put(key_of(0), [data[:-20]])
        engine = await open_engine(store, epochs)
        assert await read_offsets(engine) == [0]
        assert engine.logs.get(TOPIC, 0).high_watermark == 2

    simulate(scenario)


@pytest.mark.parametrize("bit", [0, 1, 12, 40, 61, 63])
@pytest.mark.parametrize("has_index", [True, False])
def test_damaged_end_of_the_last_segment_is_not_believed(bit, has_index):
    """The footer has no checksum of its own, and says which offset comes next."""

    async def scenario():
        store, epochs = memory_store(), Epochs()
        await rolled(store, epochs)
        data = bytearray(await store.get(key_of(2)))
        position = len(data) - segment.FOOTER_BYTES + 4 + 7 - bit // 8
        data[position] ^= 1 << bit % 8
        await store.put(key_of(2), [data], create=False)
        if not has_index:
            await store.delete([key_of(2, object_keys.index_key)])
        engine = await open_engine(store, epochs, partitions=topic(end_offset=2))
        assert await read_offsets(engine) == [0, 1, 2]
        assert await append(engine, b"d") == 3

    simulate(scenario)


def test_unknown_objects_are_ignored():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        await rolled(store, epochs)
        garbage = [f"{NAMESPACE}/{TOPIC}/0/readme", f"{NAMESPACE}/{TOPIC}/9/segment-{0:020d}.kfs"]
        for key in garbage:
            await store.put(key, [b"hello"])
        assert await read_offsets(await open_engine(store, epochs)) == [0, 1, 2]
        assert set(garbage) <= set(await keys(store))

    simulate(scenario)


def test_log_without_segments_continues_at_its_start():
    async def scenario():
        partitions = topic(start_offset=42)
        engine = await open_engine(memory_store(), partitions=partitions)
        log = engine.logs.get(TOPIC, 0)
        assert (log.start_offset, log.high_watermark, log.end_offset) == (42, 42, 42)
        assert await append(engine, b"a") == 42

    simulate(scenario)


def test_records_below_the_log_start_are_not_served_but_update_producer_state():
    async def scenario():
        store, epochs = memory_store(), Epochs()
        engine = await open_engine(store, epochs)
        for number in range(3):
            await append(engine, b"x", producer_id=5, producer_epoch=0, base_sequence=number)
        engine.close()
        engine = await open_engine(store, epochs, partitions=topic(start_offset=3))
        assert engine.logs.get(TOPIC, 0).start_offset == 3
        again = await append(engine, b"x", producer_id=5, producer_epoch=0, base_sequence=1)
        assert again == 1
        assert await append(engine, b"y", producer_id=5, producer_epoch=0, base_sequence=3) == 3

    simulate(scenario)


async def many_segments(store: MemoryObjectStore, count: int) -> None:
    builder = segment.Builder(0, 4096, compression=None, prior_max_timestamp_ms=-1)
    builder.append(batch(count - 1, 1))
    built = builder.finish()
    for base_offset in range(count - 1):
        await MemoryObjectStore.put(store, key_of(base_offset), [b"?"])
        await MemoryObjectStore.put(store, key_of(base_offset, object_keys.index_key), [b"?"])
    await MemoryObjectStore.put(store, key_of(count - 1), built.parts)
    await MemoryObjectStore.put(store, key_of(count - 1, object_keys.index_key), [built.index])


def test_number_of_requests_does_not_depend_on_segments():
    """N-10b."""

    async def scenario():
        store = CountingStore()
        await many_segments(store, SEGMENTS_COUNT)
        engine = await open_engine(store)
        assert await read_offsets(engine, SEGMENTS_COUNT - 1) == [SEGMENTS_COUNT - 1]
        assert store.requests.total() < 50
        assert len(engine.logs.get(TOPIC, 0).segments) == SEGMENTS_COUNT

    simulate(scenario)


def test_partitions_are_opened_concurrently():
    async def scenario():
        engine = await open_engine(memory_store(), partitions=topic(40, settings=log_settings()))
        assert (
            await asyncio.gather(*(append(engine, b"a", partition=number) for number in range(40)))
            == [0] * 40
        )

    simulate(scenario)
