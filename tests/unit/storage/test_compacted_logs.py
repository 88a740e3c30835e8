"""Logs with offset gaps inside batches, as compaction leaves them."""

from kafscale.records import BatchView, Record, TimestampType, build, iterate, split
from kafscale.records.batch import LAST_OFFSET_DELTA_POSITION
from kafscale.storage.formats import segment
from kafscale.storage.log import timestamp_lookup
from unit.storage.engines import (
    TOPIC,
    append,
    keys,
    log_settings,
    memory_store,
    open_engine,
    roll,
    simulate,
    topic,
)
from unit.storage.sessions import FakeMetadataStore
from unit.storage.staged_segments import PREFIX, segment_of

NOW_MS = 1_750_000_000_000


def compacted(base_offset, last_offset, *offsets, timestamp_type=TimestampType.CREATE_TIME):
    """A batch that spans more offsets than it has records."""
    # Sequences are those of the offsets, as if one producer had sent everything.
    batch = BatchView(
        build(
            [Record(offset, NOW_MS, b"key", b"%d" % offset) for offset in (base_offset, *offsets)],
            timestamp_type=timestamp_type,
            producer_id=1,
            producer_epoch=0,
            base_sequence=base_offset,
        )
    )
    span = (last_offset - base_offset).to_bytes(4, "big")
    batch.buffer[LAST_OFFSET_DELTA_POSITION : LAST_OFFSET_DELTA_POSITION + 4] = span
    batch.write_checksum()
    return batch


async def swapped(store, metadata, **settings):
    """A log of ten records, after a swap to their compacted segment."""
    engine = await open_engine(
        store, save_state=metadata.save, partitions=topic(settings=log_settings(**settings))
    )
    log = engine.logs.get(TOPIC, 0)
    for offset in range(10):
        await append(engine, b"%d" % offset, producer_id=1, producer_epoch=0, base_sequence=offset)
    await roll(engine)
    stamp = log.settings.timestamp_type
    left = [compacted(0, 5, 2, timestamp_type=stamp), compacted(6, 9, 8, timestamp_type=stamp)]
    await store.put(f"{PREFIX}segment-{0:020d}.kfs", segment_of(left).parts)
    await engine.swap_segments(log, PREFIX)
    return engine, log


async def read(engine, log, offset=0):
    result, _ = await engine.reader.read(log, offset, 1 << 30, first=True)
    return [record.offset for batch in split(b"".join(result)) for record in iterate(batch)]


def test_tail_is_evicted_when_its_segments_are_compacted():
    async def scenario():
        engine, log = await swapped(memory_store(), FakeMetadataStore())
        assert await read(engine, log) == [0, 2, 6, 8]
        assert await read(engine, log, 4) == [0, 2, 6, 8], "from the batch that holds it"
        assert await append(engine, b"new", producer_id=1, base_sequence=10, producer_epoch=0) == 10
        assert await read(engine, log, 9) == [6, 8, 10]

    simulate(scenario)


def test_lost_index_of_a_compacted_segment_is_rebuilt():
    async def scenario():
        store, metadata = memory_store(), FakeMetadataStore()
        engine, _ = await swapped(store, metadata)
        engine.close()
        await store.delete(await keys(store, ".index"))
        engine = await open_engine(store, partitions=[metadata.to_open()])
        log = engine.logs.get(TOPIC, 0)
        assert await read(engine, log) == [0, 2, 6, 8]
        assert len(await keys(store, ".index")) == 1
        again = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 10}
        assert await append(engine, b"new", **again) == 10, "its last sequence is known"

    simulate(scenario)


def test_batches_with_gaps_are_salvaged():
    left = [compacted(0, 5, 2), compacted(6, 9, 8)]
    data = bytearray(b"".join(segment_of(left).parts))
    data[-1] ^= 1
    saved = segment.salvage(data)
    assert [(batch.base_offset, batch.next_offset) for batch in saved] == [(0, 6), (6, 10)]


def test_timestamp_lookup_ignores_removed_records():
    async def scenario():
        stamped = TimestampType.LOG_APPEND_TIME
        engine, log = await swapped(memory_store(), FakeMetadataStore(), timestamp_type=stamped)
        log.advance_start(1)
        result = await timestamp_lookup.offset_for_timestamp(engine.reader, log, NOW_MS)
        assert result is not None
        assert result.offset == 2

    simulate(scenario)
