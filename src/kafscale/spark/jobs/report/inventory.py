"""What a store holds of each topic, counted where the objects are.

Of a segment, its header, its index and the first bytes are read: how many records it has, when they
are from, how they are compressed. Of some segments of each partition a few batches more are
decompressed, to learn how large records are without compression. What the WAL holds is known from
its tables already.

The laws: nothing is counted twice, because what is counted are the extents of an
`OffsetMap`, none of
which overlaps another. A task answers with one `Tally` a partition, however many segments it has
looked at, and tallies add up in any order. An object that has gone meanwhile is left out; one that
is damaged is counted by its size and named.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError, ObjectNotFoundError, RecordsError
from kafscale.records import inflate, split
from kafscale.records.batch import HEADER, LENGTH_OVERHEAD_BYTES, BatchHeader, check_magic
from kafscale.records.batch import HEADER_BYTES as BATCH_HEADER_BYTES
from kafscale.records.compression import codec_of
from kafscale.spark.plan.offset_map import Extent, OffsetMap, PartitionOffsets, TopicPartition
from kafscale.spark.source.location import Location
from kafscale.storage.formats import index, object_keys, segment
from kafscale.storage.objects.store import ObjectStore

DAY_MS: Final = 86_400_000

TASK_SEGMENTS: Final = 256
"""How many segments one task looks at: few requests each, many at a time."""

READS_MAX: Final = 32

SAMPLES_MAX: Final = 8
"""How many segments of a partition are looked into, spread over its length."""

SAMPLE_BYTES: Final = 256 * 1024
"""How much is read of these; more, up to a batch, if not even one fits."""

_PEEK_BYTES: Final = segment.HEADER_BYTES + BATCH_HEADER_BYTES


class Look(msgspec.Struct, frozen=True):
    """A segment to look at."""

    place: TopicPartition
    key: str
    size_bytes: int
    is_sampled: bool


class Tally(msgspec.Struct):
    """What was counted of a partition; made to be added up."""

    place: TopicPartition
    segments: int = 0
    segment_bytes: int = 0
    index_bytes: int = 0
    wal_bytes: int = 0
    records: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    sampled_bytes: int = 0
    """Of the batches that were decompressed, as they are stored."""
    inflated_bytes: int = 0
    """Of the same, without compression."""
    codecs: Counter[str] = msgspec.field(default_factory=Counter)
    """How many bytes of the batches that were met have which."""
    days: Counter[int] = msgspec.field(default_factory=Counter)
    """How many bytes are from which day, counted from 1970."""
    sizes: Counter[int] = msgspec.field(default_factory=Counter)
    """How many segments have so many bits in their size: up to 1 KiB, up to 2 KiB, ..."""
    damaged: list[str] = []

    def add(self, other: "Tally") -> None:
        """Take over what another has counted of the same partition."""
        assert self.place == other.place
        self.segments += other.segments
        self.segment_bytes += other.segment_bytes
        self.index_bytes += other.index_bytes
        self.wal_bytes += other.wal_bytes
        self.records += other.records
        self.sampled_bytes += other.sampled_bytes
        self.inflated_bytes += other.inflated_bytes
        self.codecs += other.codecs
        self.days += other.days
        self.sizes += other.sizes
        self.damaged += other.damaged
        for time_ms in (other.oldest_ms, other.newest_ms):
            if time_ms is not None:
                self.see(time_ms)

    def see(self, time_ms: int) -> None:
        """Take note of a time that a record has."""
        if time_ms >= 0:
            self.oldest_ms = time_ms if self.oldest_ms is None else min(self.oldest_ms, time_ms)
            self.newest_ms = time_ms if self.newest_ms is None else max(self.newest_ms, time_ms)

    @property
    def stored_bytes(self) -> int:
        return self.segment_bytes + self.index_bytes + self.wal_bytes


# --- the driver -----------------------------------------------------------------------------------


def plan(offset_map: OffsetMap) -> list[tuple[Look, ...]]:
    """All segments to look at, as many at a time as a task takes."""
    looks = [look for found in offset_map.partitions.values() for look in _looks(found)]
    return [
        tuple(looks[start : start + TASK_SEGMENTS]) for start in range(0, len(looks), TASK_SEGMENTS)
    ]


def add_up(
    offset_map: OffsetMap, counted: Iterable[Sequence[Tally]]
) -> dict[TopicPartition, Tally]:
    """What there is of every partition, empty ones included."""
    total = {place: _in_wal(found) for place, found in offset_map.partitions.items()}
    for tallies in counted:
        for tally in tallies:
            total[tally.place].add(tally)
    return total


def _looks(found: PartitionOffsets) -> Iterator[Look]:
    segments = [extent for extent in found.extents if not extent.is_wal]
    stride = max(-(-len(segments) // SAMPLES_MAX), 1)
    for number, extent in enumerate(segments):
        size_bytes = extent.position + extent.length + segment.FOOTER_BYTES
        is_sampled = number % stride == 0
        yield Look((found.topic, found.partition), extent.key, size_bytes, is_sampled)


def _in_wal(found: PartitionOffsets) -> Tally:
    tally = Tally((found.topic, found.partition))
    for extent in found.extents:
        if extent.is_wal:
            _count_run(tally, extent)
    return tally


def _count_run(tally: Tally, extent: Extent) -> None:
    tally.wal_bytes += extent.length
    tally.records += extent.end_offset - extent.start_offset
    if extent.max_timestamp_ms is not None:
        tally.see(extent.max_timestamp_ms)
        tally.days[max(extent.max_timestamp_ms, 0) // DAY_MS] += extent.length


# --- a task ---------------------------------------------------------------------------------------


def count(location: Location, looks: Sequence[Look]) -> list[Tally]:
    """What is in these segments, by partition."""
    with location.open() as store:
        return store.run(lambda opened: count_in(opened, location.namespace, looks))


async def count_in(store: ObjectStore, namespace: str, looks: Sequence[Look]) -> list[Tally]:
    slots = asyncio.Semaphore(READS_MAX)

    async def guarded(look: Look) -> Tally | None:
        async with slots:
            return await _count_segment(store, namespace, look)

    tallies: dict[TopicPartition, Tally] = {}
    for tally in await asyncio.gather(*map(guarded, looks)):
        if tally is not None:
            tallies.setdefault(tally.place, Tally(tally.place)).add(tally)
    return list(tallies.values())


async def _count_segment(store: ObjectStore, namespace: str, look: Look) -> Tally | None:
    """What a segment holds; None if it has gone."""
    tally = Tally(look.place, segments=1, segment_bytes=look.size_bytes)
    tally.sizes[look.size_bytes.bit_length()] += 1
    try:
        wanted_bytes = SAMPLE_BYTES if look.is_sampled else _PEEK_BYTES
        head = await store.get_range(look.key, 0, min(look.size_bytes, wanted_bytes))
        header = segment.decode_header(look.key, head)
        first = _first(look, head)
        tally.records = header.count
        tally.see(first.base_timestamp_ms)
        tally.see(first.max_timestamp_ms)
        if look.is_sampled:
            await _sample(store, look, head, tally)
        else:
            tally.codecs[_codec_name(first)] += first.length + LENGTH_OVERHEAD_BYTES
        await _count_times(store, namespace, look, header, tally)
    except ObjectNotFoundError:
        return None
    except (DamagedObjectError, RecordsError) as error:
        tally.damaged.append(f"{look.key}: {getattr(error, 'reason', error)}")
    return tally


async def _sample(store: ObjectStore, look: Look, head: memoryview, tally: Tally) -> None:
    """Decompress the batches at the beginning of a segment, at least one."""
    end = segment.HEADER_BYTES + _first(look, head).length + LENGTH_OVERHEAD_BYTES
    if end > len(head):
        head = await store.get_range(look.key, 0, end)
    body_end = min(len(head), look.size_bytes - segment.FOOTER_BYTES)
    for batch in split(head[segment.HEADER_BYTES : body_end], partial_ok=True):
        batch.verify_checksum()
        tally.codecs[_codec_name(batch.header())] += len(batch)
        tally.sampled_bytes += len(batch)
        tally.inflated_bytes += BATCH_HEADER_BYTES + len(inflate(batch))


async def _count_times(
    store: ObjectStore, namespace: str, look: Look, header: segment.Header, tally: Tally
) -> None:
    """From when a segment is, as its index tells; without one, it is from when it was made."""
    key = object_keys.index_key(namespace, *look.place, header.base_offset)
    try:
        data = await store.get(key)
        tally.index_bytes = len(data)
        found = index.decode(key, data)
    except (ObjectNotFoundError, DamagedObjectError):
        found = None  # It can be made again from the segment, and is no loss.
    if found is None or found.max_timestamps is None:
        tally.days[max(header.created_ms, 0) // DAY_MS] += look.size_bytes
        return
    ends = [*found.positions[1:], look.size_bytes]
    for start, end, time_ms in zip(found.positions, ends, found.max_timestamps, strict=True):
        tally.see(time_ms)
        tally.days[_arrival_ms(time_ms, header.created_ms) // DAY_MS] += end - start


def _arrival_ms(time_ms: int, created_ms: int) -> int:
    """When a record probably came: when it says, unless that cannot be.

    It says nothing, or came from a clock that was ahead: then, when its segment was made.
    """
    if time_ms <= 0 or 0 < created_ms < time_ms:
        return max(created_ms, 0)
    return time_ms


def _first(look: Look, head: memoryview) -> BatchHeader:
    """The header of the first batch of a segment, which ends before the segment does."""
    if len(head) < _PEEK_BYTES:
        raise DamagedObjectError(look.key, f"{len(head)} bytes are too few for a batch")
    header = BatchHeader._make(HEADER.unpack_from(head, segment.HEADER_BYTES))
    check_magic(header.magic)
    room_bytes = look.size_bytes - segment.HEADER_BYTES - segment.FOOTER_BYTES
    if not BATCH_HEADER_BYTES <= header.length + LENGTH_OVERHEAD_BYTES <= room_bytes:
        raise DamagedObjectError(look.key, f"its first batch says it has {header.length} bytes")
    return header


def _codec_name(header: BatchHeader) -> str:
    return codec_of(header.attributes).name.lower()
