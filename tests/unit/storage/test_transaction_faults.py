"""Readers of committed records while segments are deleted or replaced between their steps."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.broker.shared.fetch_reads import from_segments
from kafscale.errors import OffsetOutOfRangeError
from kafscale.storage.formats.segment_output import SegmentOutput
from unit.storage.engines import TOPIC, append, memory_store, open_engine, roll, simulate
from unit.storage.sessions import FakeMetadataStore
from unit.storage.staged_segments import PREFIX
from unit.storage.transactions import ABORT, COMMIT, Producer, Written, all_committed


async def opened(store, metadata=None):
    metadata = metadata or FakeMetadataStore()
    engine = await open_engine(store, partitions=[metadata.to_open()], save_state=metadata.save)
    return engine, engine.logs.get(TOPIC, 0)


def evict(log):
    while log.tail.evict():
        pass


async def stage_merged(engine, log):
    """Stage one segment for all of a log, as a job does."""
    segments = list(log.segments)
    output = SegmentOutput(segments[0].base_offset, segments[-1].next_offset, 0)
    for each in segments:
        position = 32
        while batches := await engine.reader.batches(log, each, position):
            for batch in batches:
                output.append("", batch)
                position += len(batch)
    key = f"{PREFIX}segment-{segments[0].base_offset:020d}.kfs"
    await engine._store.put(key, output.finish().parts, create=False)


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
        await stage_merged(engine, log)
        # It crashes before the other segments are marked as merged.
        store.rules = [Rule(fault=Fault.REFUSED, keys="*merged-*")]
        swap = asyncio.ensure_future(engine.swap_segments(log, PREFIX))
        await asyncio.sleep(30)
        assert not swap.done()
        engine.close()
        store.rules = []
        engine, log = await opened(store, metadata)
        assert len(log.segments) == 3
        await stage_merged(engine, log)
        await engine.swap_segments(log, PREFIX)
        evict(log)
        assert len(log.segments) == 1
        assert await all_committed(engine, log, 0) == written.committed

    simulate(scenario)
