"""The end of a replay: the records of one partition of the source, into the partitions of a topic.

The laws: records are written in the order in which they come, which is that of their offsets; each
exactly once, however often a task is begun (see `replay_progress`). Nothing is done per record in
Python.
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
from kafscale.client.idempotent_appender import Appender
from kafscale.client.partition import Partition
from kafscale.client.security import PLAINTEXT, Security
from kafscale.client.topics import led
from kafscale.errors import InvalidRequestError
from kafscale.net.host_port import Address
from kafscale.records import Codec
from kafscale.spark.codec.encoder import Encoder
from kafscale.spark.jobs.replay.progress import SOURCE_HEADER, Progress, Written, find, mark

KEEP: Final = "keep"
KEY: Final = "key"


class ReplayItem(msgspec.Struct, frozen=True):
    """A partition of the source, and all that its task must know to write it."""

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
        """Those of the target that records may go to."""
        if self.partitioner == KEEP:
            return range(self.partition, self.partition + 1)
        return range(self.partition_count)


class Replayed(msgspec.Struct):
    """What became of a partition of the source."""

    partition: int
    record_count: int = 0
    """Those that came through the filter, of what was read."""
    written_count: int = 0
    """Those that were not written yet."""
    written_bytes: int = 0
    batch_count: int = 0


class Sink:
    """Writes for one task."""

    def __init__(self, item: ReplayItem, client: BlockingClient) -> None:
        self.result = Replayed(item.partition)
        self._item = item
        self._client = client
        self._last = (-1, 0)
        """The offset of the last record that came, and its number."""
        self._written: dict[int, Written] = {}
        self._lanes: dict[int, Appender] = {}
        client.run(self._open)

    async def _open(self, client: Client) -> None:
        """Find out what is there by now, since an earlier attempt may have been at work."""
        item = self._item
        topic = await led(client, item.target)
        for index in item.partitions:
            partition = Partition(client, topic, index)
            since = item.progress.ends.get(index)
            _, found = await find(partition, [item.producer_id], since)
            known = found.get(item.producer_id) or item.progress.written.get(index)
            if known is not None:
                self._written[index] = known
            sequence = known.sequence if known is not None else 0
            self._lanes[index] = Appender(partition, item.producer_id, sequence)

    def write(self, records: pa.RecordBatch) -> None:
        """Take records, and return when most of them are durable."""
        offsets = records.column("offset").to_numpy(zero_copy_only=False)
        numbers = self._numbers(offsets)
        encoder = Encoder(records, SOURCE_HEADER, self._marks(records.column("offset"), numbers))
        self.result.record_count += offsets.size
        partitions = np.full(offsets.size, self._item.partition, np.int32)
        if self._item.partitioner == KEY:
            partitions = encoder.partitions(self._item.partition_count, partitions)
        work = []
        for index in np.unique(partitions).tolist():
            rows = np.flatnonzero((partitions == index) & self._is_new(index, offsets, numbers))
            if rows.size:
                self.result.written_count += rows.size
                work.append((self._lanes[index], encoder.batches(rows, self._item.codec)))
        self._client.run(lambda _: self._send(work))

    def finish(self) -> Replayed:
        """Return when all is durable."""
        self._client.run(lambda _: self._flush())
        return self.result

    async def _send(self, work: Sequence[tuple[Appender, Iterable[bytearray]]]) -> None:
        await asyncio.gather(*(self._add(lane, batches) for lane, batches in work))

    async def _add(self, lane: Appender, batches: Iterable[bytearray]) -> None:
        for batch in batches:
            self.result.batch_count += 1
            self.result.written_bytes += len(batch)
            await lane.add(batch)

    async def _flush(self) -> None:
        await asyncio.gather(*(lane.flush() for lane in self._lanes.values()))

    def _numbers(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which record each is of those that are made of the same one."""
        before = np.concatenate(([self._last[0]], offsets[:-1]))
        if (offsets < before).any():
            raise InvalidRequestError(
                f"the records of {self._item.topic}/{self._item.partition} do not come in order:"
                " a function has to leave them in the order of their offsets"
            )
        places = np.arange(offsets.size)
        starts = np.maximum.accumulate(np.where(offsets != before, places, 0))
        numbers = places - starts
        if offsets.size and offsets[0] == self._last[0]:
            numbers[offsets == offsets[0]] += self._last[1] + 1
        if offsets.size:
            self._last = int(offsets[-1]), int(numbers[-1])
        return numbers

    def _marks(self, offsets: pa.Array, numbers: NDArray[np.int64]) -> pa.Array:
        prefix = mark(self._item.topic, self._item.partition, 0).removesuffix("0")
        marks = pc.binary_join_element_wise(prefix, offsets.cast(pa.string()), "")
        if not numbers.any():
            return marks
        counted = pc.binary_join_element_wise(marks, pa.array(numbers).cast(pa.string()), "/")
        return pc.if_else(pa.array(numbers > 0), counted, marks)

    def _is_new(
        self, index: int, offsets: NDArray[np.int64], numbers: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        known = self._written.get(index)
        if known is None:
            return np.ones(offsets.size, np.bool_)
        later: NDArray[np.bool_] = (offsets == known.offset) & (numbers > known.number)
        return (offsets > known.offset) | later
