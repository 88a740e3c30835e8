"""Writes the records of one source partition to the partitions of the target topic.

Invariants: records are written in offset order, each exactly once however often a task is started
(see `progress`). No Python code runs per record.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kafscale.client.blocking import BlockingClient
from kafscale.client.client import Client
from kafscale.client.idempotent_appender import IdempotentAppender
from kafscale.client.partition import Partition
from kafscale.client.security import PLAINTEXT, Security
from kafscale.client.topics import wait_for_leaders
from kafscale.errors import InvalidRequestError
from kafscale.net.address import Address
from kafscale.records import Codec
from kafscale.spark.codec.encoder import Encoder
from kafscale.spark.jobs.replay.progress import (
    SOURCE_HEADER,
    LastWritten,
    Progress,
    find_last_written,
    format_source,
)

KEEP: Final = "keep"
KEY: Final = "key"


class ReplayItem(msgspec.Struct, frozen=True):
    """A partition of the source, and what its task needs to write it."""

    topic: str
    partition: int
    bootstrap: tuple[Address, ...]
    target: str
    partition_count: int
    partitioner: str
    codec: Codec
    producer_id: int
    progress: Progress
    security: Security = PLAINTEXT

    @property
    def partitions(self) -> range:
        """The target partitions that records may be written to."""
        if self.partitioner == KEEP:
            return range(self.partition, self.partition + 1)
        return range(self.partition_count)


class PartitionResult(msgspec.Struct):
    """The result of replaying a partition of the source."""

    partition: int
    record_count: int = 0
    """The number of records that passed the filter."""
    written_count: int = 0
    """Of those, the number that earlier runs had not written."""
    written_bytes: int = 0
    batch_count: int = 0


class Sink:
    """Writes the records of one task."""

    def __init__(self, item: ReplayItem, client: BlockingClient) -> None:
        self.result = PartitionResult(item.partition)
        self._item = item
        self._client = client
        self._last = (-1, 0)
        """The source offset of the last record, and its number among records of that offset."""
        self._written: dict[int, LastWritten] = {}
        self._appenders: dict[int, IdempotentAppender] = {}
        client.run(self._open)

    async def _open(self, client: Client) -> None:
        """Read the progress again, because an earlier attempt of the task may have written."""
        item = self._item
        topic = await wait_for_leaders(client, item.target)
        for index in item.partitions:
            partition = Partition(client, topic, index)
            since = item.progress.ends.get(index)
            _, last = await find_last_written(partition, [item.producer_id], since)
            known = last.get(item.producer_id) or item.progress.written.get(index)
            if known is not None:
                self._written[index] = known
            sequence = known.sequence if known is not None else 0
            self._appenders[index] = IdempotentAppender(partition, item.producer_id, sequence)

    def write(self, records: pa.RecordBatch) -> None:
        """Write records; return when most of them are durable."""
        offsets = records.column("offset").to_numpy(zero_copy_only=False)
        numbers = self._numbers(offsets)
        encoder = Encoder(records, SOURCE_HEADER, self._sources(records.column("offset"), numbers))
        self.result.record_count += offsets.size
        partitions = np.full(offsets.size, self._item.partition, np.int32)
        if self._item.partitioner == KEY:
            partitions = encoder.partitions(self._item.partition_count, partitions)
        work = []
        for index in np.unique(partitions).tolist():
            rows = np.flatnonzero((partitions == index) & self._is_new(index, offsets, numbers))
            if rows.size:
                self.result.written_count += rows.size
                work.append((self._appenders[index], encoder.batches(rows, self._item.codec)))
        self._client.run(lambda _: self._send(work))

    def finish(self) -> PartitionResult:
        """Return when all records are durable."""
        self._client.run(lambda _: self._flush())
        return self.result

    async def _send(self, work: Sequence[tuple[IdempotentAppender, Iterable[bytearray]]]) -> None:
        await asyncio.gather(*(self._add(appender, batches) for appender, batches in work))

    async def _add(self, appender: IdempotentAppender, batches: Iterable[bytearray]) -> None:
        for batch in batches:
            self.result.batch_count += 1
            self.result.written_bytes += len(batch)
            await appender.add(batch)

    async def _flush(self) -> None:
        await asyncio.gather(*(appender.flush() for appender in self._appenders.values()))

    def _numbers(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number the records that have the same source offset."""
        before = np.concatenate(([self._last[0]], offsets[:-1]))
        if (offsets < before).any():
            raise InvalidRequestError(
                f"the records of {self._item.topic}/{self._item.partition} are not in offset order:"
                " the function must return them in the order of their offsets"
            )
        indexes = np.arange(offsets.size)
        starts = np.maximum.accumulate(np.where(offsets != before, indexes, 0))
        numbers = indexes - starts
        if offsets.size and offsets[0] == self._last[0]:
            numbers[offsets == offsets[0]] += self._last[1] + 1
        if offsets.size:
            self._last = int(offsets[-1]), int(numbers[-1])
        return numbers

    def _sources(self, offsets: pa.Array, numbers: NDArray[np.int64]) -> pa.Array:
        prefix = format_source(self._item.topic, self._item.partition, 0).removesuffix("0")
        sources = pc.binary_join_element_wise(prefix, offsets.cast(pa.string()), "")
        if not numbers.any():
            return sources
        numbered = pc.binary_join_element_wise(sources, pa.array(numbers).cast(pa.string()), "/")
        return pc.if_else(pa.array(numbers > 0), numbered, sources)

    def _is_new(
        self, index: int, offsets: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        known = self._written.get(index)
        if known is None:
            return np.ones(offsets.size, np.bool_)
        later: NDArray[np.bool_] = (offsets == known.offset) & (numbers > known.number)
        return (offsets > known.offset) | later
