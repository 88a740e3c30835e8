"""The task of a restore: copies one partition from the bucket to a partition of the new topic.

A record is selected by its own offset and timestamp. A batch of which all records are selected is
copied unchanged. Other batches are rebuilt from the selected records with the same codec; so are
batches that a producer may not send: those with LogAppendTime, which become CreateTime, those with
gaps from compaction, and those of transactions. Control batches have no records, and aborted ones
are left out.

The new partition holds the progress: a prefix of the selected records, because one producer with
the same id in every run appends them in order (see `client.idempotent_appender`), and its sequence
is the offset. Existing records are skipped, and the last existing batch is compared record by
record, so that a source that has changed since the first run (by retention or compaction) is
detected.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.client.blocking import BlockingClient
from kafscale.client.client import Client
from kafscale.client.idempotent_appender import UNKNOWN_OFFSET, IdempotentAppender, producer_id_of
from kafscale.client.partition import Partition
from kafscale.client.security import PLAINTEXT, Security
from kafscale.client.topics import wait_for_leaders
from kafscale.errors import InvalidRequestError
from kafscale.net.address import Address
from kafscale.records import BatchView, Codec, Record, build, iterate
from kafscale.records.compression import CODEC_MASK
from kafscale.spark.codec.aborted_batches import NONE_ABORTED, AbortedBatches
from kafscale.spark.codec.columns import Columns
from kafscale.spark.codec.decoder import Decoder
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.location import Location
from kafscale.spark.read.slice_reader import BatchGroup, SliceReader

_TIMESTAMPS: Final = Columns(("offset", "timestamp"))
_START_AGAIN: Final = (
    "the source has changed since the restore began; delete the new topic and start again"
)


class Selection(msgspec.Struct, frozen=True):
    """The records of a partition to restore. Pure."""

    start_offset: int
    end_offset: int
    """Exclusive."""
    until_ms: int | None = None
    """The greatest timestamp, inclusive."""
    aborted: AbortedBatches = NONE_ABORTED

    def contains(self, record: Record) -> bool:
        return self.start_offset <= record.offset < self.end_offset and (
            self.until_ms is None or record.timestamp_ms <= self.until_ms
        )

    def select(self, batch: BatchView) -> bytearray | None:
        """Return the selected records of a batch as a batch to produce; None if there are none."""
        if batch.is_control or self.aborted.contains(batch):
            return None
        if self.is_copyable(batch):
            return bytearray(batch.buffer)
        return build_batch(
            [record for record in iterate(batch) if self.contains(record)], batch.codec
        )

    def is_copyable(self, batch: BatchView) -> bool:
        """Whether a batch can be copied unchanged."""
        header = batch.header()
        return (
            # Bits other than those of the codec are not set by a plain producer.
            header.attributes & ~CODEC_MASK == 0
            and header.record_count == header.last_offset_delta + 1
            and header.base_offset >= self.start_offset
            and header.base_offset + header.last_offset_delta < self.end_offset
            and (self.until_ms is None or header.max_timestamp_ms <= self.until_ms)
        )


def build_batch(records: list[Record], codec: Codec) -> bytearray | None:
    """Return a batch of the records, with offsets from 0; None if there are none."""
    if not records:
        return None
    return build(
        [msgspec.structs.replace(record, offset=index) for index, record in enumerate(records)],
        codec=codec,
    )


class RestoreItem(msgspec.Struct, frozen=True):
    """A partition to restore, as it is sent to a task."""

    location: Location
    source: Slice
    until_ms: int | None
    bootstrap: tuple[Address, ...]
    target: str
    producer_id: int
    security: Security = PLAINTEXT

    @property
    def selection(self) -> Selection:
        return Selection(
            self.source.start_offset,
            self.source.end_offset,
            self.until_ms,
            AbortedBatches(self.source.aborted),
        )


class PartitionResult(msgspec.Struct):
    """The result of restoring a partition."""

    partition: int
    record_count: int = 0
    """Of the new partition."""
    written_count: int = 0
    """Of those that this run has written."""
    written_bytes: int = 0
    batch_count: int = 0
    rebuilt_count: int = 0
    """The number of batches that could not be copied unchanged."""
    omitted_count: int = 0
    """The number of offsets of the source that were not selected or have no record."""


def producer_id_for(
    topic_id: bytes, source: Slice, until_ms: int | None, *, is_committed: bool
) -> int:
    """Return the producer id of a partition, equal for all runs of the same restore.

    The end offset is not part of it, only the time: a run without a time continues an earlier one
    although the source has grown.
    """
    isolation = () if is_committed else ("read_uncommitted",)
    return producer_id_of(
        "restore",
        topic_id,
        source.topic,
        source.partition,
        source.start_offset,
        until_ms,
        *isolation,
    )


def restore_partition(
    item: RestoreItem, step: Callable[[str], None] = lambda _: None
) -> PartitionResult:
    """Restore a partition; `step` gets the name of each finished step, for tests."""
    with item.location.open() as store, BlockingClient(item.bootstrap, item.security) as client:
        partition, existing = client.run(lambda cluster: _open(cluster, item))
        step("opened")
        reader = SliceReader(store, item.location.namespace)
        copy = _Copy(item, client, partition, existing, step)
        for read in reader.read(item.source):
            if _may_have_selected(read, item):
                for batch in read.batches:
                    copy.add(batch)
        return copy.finish()


class _Existing:
    """The records of the new partition when a run starts."""

    def __init__(self, end_offset: int, last: BatchView | None) -> None:
        self.end_offset = end_offset
        records = iterate(last) if last is not None else ()
        self._last = {record.offset: record for record in records}
        self._last_offset = min(self._last, default=end_offset)

    def skip(self, offset: int, batch: BatchView) -> tuple[int, bytearray | None]:
        """Return how many records of a batch at an offset exist already, and the other records."""
        if offset + batch.count <= self._last_offset:
            return batch.count, None
        records = list(iterate(batch))
        known_count = min(self.end_offset - offset, len(records))
        for index, record in enumerate(records[:known_count], offset):
            known = self._last.get(index)
            if known is not None and msgspec.structs.replace(record, offset=index) != known:
                raise InvalidRequestError(
                    f"the record at offset {index} differs from the source: {_START_AGAIN}"
                )
        return known_count, build_batch(records[known_count:], batch.codec)


class _Copy:
    """Appends the selected records to the new partition."""

    def __init__(
        self,
        item: RestoreItem,
        client: BlockingClient,
        partition: Partition,
        existing: _Existing,
        step: Callable[[str], None],
    ) -> None:
        self._item = item
        self._selection = item.selection
        self._client = client
        self._existing = existing
        self._step = step
        self._appender = IdempotentAppender(partition, item.producer_id, existing.end_offset)
        self._next_offset = 0
        """Of the next record in the new partition."""
        self._sent_offsets: list[int] = []
        """The expected offsets of batches that are not acknowledged yet."""
        self._result = PartitionResult(item.source.partition)

    def add(self, batch: BatchView) -> None:
        selected = self._selection.select(batch)
        is_rebuilt = not self._selection.is_copyable(batch)
        if selected is not None and self._next_offset < self._existing.end_offset:
            known_count, selected = self._existing.skip(self._next_offset, BatchView(selected))
            self._next_offset += known_count
            is_rebuilt = True
        if selected is None:
            return
        self._result.batch_count += 1
        self._result.rebuilt_count += is_rebuilt
        self._result.written_bytes += len(selected)
        self._sent_offsets.append(self._next_offset)
        self._next_offset += BatchView(selected).count
        self._confirm(self._client.run(lambda _: self._appender.add(selected)))

    def finish(self) -> PartitionResult:
        self._confirm(self._client.run(lambda _: self._appender.flush()))
        if self._next_offset < self._existing.end_offset:
            raise InvalidRequestError(
                f"{self._item.target}/{self._item.source.partition} has"
                f" {self._existing.end_offset} records, the source {self._next_offset}:"
                f" {_START_AGAIN}"
            )
        self._result.record_count = self._next_offset
        self._result.written_count = self._next_offset - self._existing.end_offset
        self._result.omitted_count = self._item.source.count - self._next_offset
        return self._result

    def _confirm(self, offsets: list[int]) -> None:
        """Check that batches were appended at the expected offsets."""
        if not offsets:
            return
        for offset, expected in zip(offsets, self._sent_offsets, strict=True):
            if offset not in {expected, UNKNOWN_OFFSET}:
                raise InvalidRequestError(
                    f"another producer writes to {self._item.target}/{self._item.source.partition}:"
                    f" a batch was appended at offset {offset}, expected {expected}"
                )
        self._sent_offsets.clear()
        self._step("appended")


def _may_have_selected(read: BatchGroup, item: RestoreItem) -> bool:
    """Whether batches may have a selected timestamp, decoded in compiled code."""
    until_ms, source = item.until_ms, item.source
    if until_ms is None or any(batch.max_timestamp_ms <= until_ms for batch in read.batches):
        return True
    return any(
        int(part.column("timestamp").cast("int64").to_numpy().min()) <= until_ms * 1000
        for part in Decoder(_TIMESTAMPS).decode_in_parts(
            read.key,
            source.topic,
            source.partition,
            read.batches,
            source.start_offset,
            source.end_offset,
        )
    )


async def _open(client: Client, item: RestoreItem) -> tuple[Partition, _Existing]:
    topic = await wait_for_leaders(client, item.target)
    partition = Partition(client, topic, item.source.partition)
    _, end_offset = await partition.bounds()
    return partition, _Existing(end_offset, await partition.last_batch())
