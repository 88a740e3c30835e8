"""Jobs that replace segments, as Spark jobs do: they list, read, stage, and ask a broker to swap.

A merge copies batches unchanged. Compaction drops records whose key occurs again later in the same
range, and keeps the offset range of each batch, as in Kafka; it leaves transactions alone. The base
offsets of staged segments are base offsets of segments that they replace.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random
from struct import Struct
from typing import Final

from doubles.virtual_time import clock_ms
from kafscale.errors import KafscaleError
from kafscale.records import BatchView, build, iterate
from kafscale.records.batch import (
    BASE_SEQUENCE_POSITION,
    CONTROL_BIT,
    LAST_OFFSET_DELTA_POSITION,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
)
from kafscale.spark.plan.offset_map import Extent
from kafscale.storage.bucket import read_segment_footer
from kafscale.storage.formats import object_keys, segment
from simulation.brokers import Broker
from simulation.bucket_reader import list_partition, read_extent
from simulation.cluster import SimulatedCluster
from simulation.model import NAMESPACE, SimulatedTopic

DELAYS_SECONDS: Final = (0, 0, 0.1, 1, 5, 30)
"""How long a job takes between staging and swapping."""

_OF_TRANSACTIONS: Final = TRANSACTIONAL_BIT | CONTROL_BIT
_INT32: Final = Struct(">i")
_SEQUENCE_MASK: Final = 0x7FFF_FFFF


class RewriteJob:
    """One run of a job on one partition."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        number: int,
        topic: SimulatedTopic,
        partition: int,
        *,
        is_compaction: bool,
    ) -> None:
        self._cluster = cluster
        self._random: Random = cluster.random
        self._store = cluster.connect()
        self._topic = topic
        self._partition = partition
        self._is_compaction = is_compaction
        self._prefix = object_keys.staging_prefix(
            NAMESPACE, f"job-{number}", topic.directory, partition
        )

    async def run(self, broker_to_ask: Callable[[SimulatedTopic, int], Broker]) -> None:
        """Run to the end, or give up: a job that fails must do no harm."""
        try:
            sources = await self._choose()
            if not sources:
                return
            checksums = await self._checksums(sources)
            if not await self._stage(sources):
                return
            await asyncio.sleep(self._random.choice(DELAYS_SECONDS))
            if await self._checksums(sources) != checksums:
                return
            await self._swap(broker_to_ask(self._topic, self._partition))
        except KafscaleError:
            return

    async def _choose(self) -> list[Extent]:
        """Some adjacent segments that are not below the log start offset."""
        listed = await list_partition(self._store, self._topic, self._partition)
        segments = [
            extent
            for extent in listed.extents
            if not extent.is_wal and extent.start_offset >= listed.start_offset
        ]
        count_min = 1 if self._is_compaction else 2
        if len(segments) < count_min:
            return []
        first = self._random.randint(0, len(segments) - count_min)
        return segments[first : self._random.randint(first + count_min, len(segments))]

    async def _checksums(self, sources: Iterable[Extent]) -> list[int]:
        return [(await read_segment_footer(self._store, each.key)).checksum for each in sources]

    async def _stage(self, sources: Sequence[Extent]) -> bool:
        """Stage one segment or a few; return whether the sources fit together."""
        batches: list[BatchView] = []
        for source in sources:
            for batch in await read_extent(self._store, source):
                if source.start_offset <= batch.base_offset < source.end_offset:
                    if batches and batch.base_offset != batches[-1].next_offset:
                        return False  # Segments have changed since they were listed.
                    batches.append(batch)
        if (batches[0].base_offset, batches[-1].next_offset) != (
            sources[0].start_offset,
            sources[-1].end_offset,
        ):
            return False
        bases = {source.start_offset for source in sources[1:] if self._random.random() < 0.3}
        bases.add(sources[0].start_offset)
        if self._is_compaction:
            batches, dropped = compact(batches, bases)
            self._topic.partitions[self._partition].allow_missing(dropped)
        part: list[BatchView] = []
        for batch in batches:
            if part and batch.base_offset in bases:
                await self._put(part)
                part = []
            part.append(batch)
        await self._put(part)
        return True

    async def _put(self, batches: Sequence[BatchView]) -> None:
        builder = segment.Builder(clock_ms(), 1, compression=None, prior_max_timestamp_ms=-1)
        for batch in batches:
            builder.append(batch)
        key = f"{self._prefix}segment-{batches[0].base_offset:020d}.kfs"
        await self._store.put(key, builder.finish().parts, create=False)

    async def _swap(self, broker: Broker) -> None:
        log = broker.engine.logs.find_by_id(self._topic.id, self._partition)
        if log is None or broker.ended.is_set():
            return
        try:
            await broker.engine.swap_segments(log, self._prefix)
        except asyncio.CancelledError:
            if not broker.ended.is_set():
                raise


def compact(batches: Sequence[BatchView], bases: set[int]) -> tuple[list[BatchView], list[int]]:
    """Drop superseded records; return the batches and the offsets of dropped records.

    The first record of each new segment stays, because the segment begins with it.
    """
    newest = {
        record.key: record.offset
        for batch in batches
        if not batch.attributes & _OF_TRANSACTIONS
        for record in iterate(batch)
        if record.key is not None
    }
    kept: list[BatchView] = []
    dropped: list[int] = []
    for batch in batches:
        records = list(iterate(batch))
        stays = [
            record
            for record in records
            if batch.attributes & _OF_TRANSACTIONS
            or record.key is None
            or newest[record.key] == record.offset
            or record.offset in bases
        ]
        dropped += [record.offset for record in records if record not in stays]
        if not stays or stays[0].offset > batch.base_offset:
            if not kept:
                stays = records
            else:
                last_offset = stays[0].offset - 1 if stays else batch.last_offset
                kept[-1] = _with_span(kept[-1], kept[-1].last_sequence, last_offset)
        if stays:
            rebuilt = build(
                stays,
                timestamp_type=batch.timestamp_type,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                leader_epoch=batch.leader_epoch,
                transactional=batch.is_transactional,
                control=batch.is_control,
            )
            kept.append(_with_span(BatchView(rebuilt), batch.last_sequence, batch.last_offset))
    return kept, dropped


def _with_span(batch: BatchView, last_sequence: int, last_offset: int) -> BatchView:
    """The batch with another last offset, and a base sequence that fits the last sequence."""
    output = bytearray(batch.buffer)
    delta = last_offset - batch.base_offset
    _INT32.pack_into(output, LAST_OFFSET_DELTA_POSITION, delta)
    if batch.base_sequence != NO_SEQUENCE:
        sequence = (last_sequence - delta) & _SEQUENCE_MASK
        _INT32.pack_into(output, BASE_SEQUENCE_POSITION, sequence)
    changed = BatchView(output)
    changed.write_checksum()
    return changed
