"""Helpers for tests of swaps: a log with segments, and staged ones to replace them."""

from collections.abc import Collection, Sequence

from kafscale.records import BatchView, iterate, split
from kafscale.storage.bucket import list_segments
from kafscale.storage.engine import StorageEngine
from kafscale.storage.formats import object_keys, segment
from kafscale.storage.formats.segment_output import SegmentOutput
from kafscale.storage.log.partition_log import PartitionLog
from unit.storage.engines import BROKER_ID, NAMESPACE, TOPIC, append, open_engine, roll
from unit.storage.samples import CREATED_MS, batch
from unit.storage.sessions import FakeMetadataStore

COUNT = 12
"""Number of batches, with one record each."""

SIZES = (3, 3, 4, 2)
"""Number of batches in each segment."""

BASES = (0, 3, 6, 10)
PREFIX = object_keys.staging_prefix(NAMESPACE, "job", TOPIC, 0)


def segment_of(batches: Sequence[BatchView]) -> segment.Built:
    builder = segment.Builder(CREATED_MS, 1, compression=None, prior_max_timestamp_ms=-1)
    for one in batches:
        builder.append(one)
    return builder.finish()


async def engine_with_segments(
    store, metadata: FakeMetadataStore | None = None, broker_id: int = BROKER_ID
):
    """An engine with a log that has only segments."""
    metadata = metadata or FakeMetadataStore()
    engine = await open_engine(
        store, broker_id=broker_id, partitions=[metadata.to_open()], save_state=metadata.save
    )
    offset = 0
    for size in SIZES:
        for _ in range(size):
            value = b"%d" % offset
            await append(engine, value, producer_id=1, producer_epoch=0, base_sequence=offset)
            offset += 1
        await roll(engine)
    log = engine.logs.get(TOPIC, 0)
    while log.tail.evict():
        pass
    return engine, log


async def stored_batches(store) -> list[BatchView]:
    """All batches as seen by a reader without metadata: a segment ends where the next begins."""
    prefix = object_keys.partition_prefix(NAMESPACE, TOPIC, 0)
    segments = [
        segment.read(item.key, await store.get(item.key))
        async for _, item in list_segments(store, NAMESPACE, prefix)
    ]
    ends = [result.header.base_offset for result in segments[1:]] + [1 << 62]
    return [
        one
        for result, end in zip(segments, ends, strict=True)
        for one in result.batches
        if one.base_offset < end
    ]


async def stage(store, *parts: Sequence[int], prefix: str = PREFIX) -> None:
    """Stage segments of the batches at these offsets, larger than they were."""
    for offsets in parts:
        batches = [batch(offset, 1, value=b"new %d" % offset) for offset in offsets]
        key = f"{prefix}segment-{offsets[0]:020d}.kfs"
        await store.put(key, segment_of(batches).parts, create=False)


async def values_of(engine) -> list[bytes]:
    log = engine.logs.get(TOPIC, 0)
    result, _ = await engine.reader.read(log, 0, 1 << 30, first=True)
    return [record.value for one in split(b"".join(result)) for record in iterate(one)]


def values(new: range, count: int = COUNT) -> list[bytes]:
    return [b"new %d" % number if number in new else b"%d" % number for number in range(count)]


PLANS = {
    "same": [range(3), range(3, 6)],
    "merge": [range(10)],
    "merge all": [range(COUNT)],
    "pairs": [range(6), range(6, COUNT)],
    "the middle": [range(3, 10)],
    "the end": [range(6, 10), range(10, COUNT)],
    "mixed": [range(3), range(3, 10), range(10, COUNT)],
}


def bases_after(plan: Sequence[Sequence[int]]) -> list[int]:
    start, end = plan[0][0], plan[-1][-1]
    outside = [base for base in BASES if not start <= base <= end]
    return sorted(outside + [offsets[0] for offsets in plan])


async def stage_merged(
    engine: StorageEngine, log: PartitionLog, *, from_number: int = 0, dropped: Collection[int] = ()
) -> None:
    """Stage one segment for those from a number on, without the batches at some offsets."""
    segments = list(log.segments)[from_number:]
    output = SegmentOutput(segments[0].base_offset, segments[-1].next_offset, CREATED_MS)
    for each in segments:
        position = segment.HEADER_BYTES
        while batches := await engine.reader.batches(log, each, position):
            for one in batches:
                if one.base_offset in dropped:
                    output.drop("", one)
                else:
                    output.append("", one)
                position += len(one)
    key = f"{PREFIX}segment-{segments[0].base_offset:020d}.kfs"
    await engine._store.put(key, output.finish().parts, create=False)


async def replace_all(engine: StorageEngine, log: PartitionLog, dropped: Collection[int]) -> None:
    """Replace all segments by one without the batches at some offsets."""
    await stage_merged(engine, log, dropped=dropped)
    await engine.swap_segments(log, PREFIX)
