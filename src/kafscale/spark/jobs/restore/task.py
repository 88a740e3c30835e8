"""Restoring one partition: batches out of the bucket, into a partition of the new topic.

The new partition is its own record of progress. It holds the first so many of the records that are
chosen, because one producer, the same one in every run, has written them in order (see
`client.idempotent_appender`): its sequence is the offset. What is there already is passed over, and
the last batch of it is compared, record by record, so that a source which has changed in between
(by retention, by compaction) is never mistaken for the one that the first run has read.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from kafscale.client.blocking import BlockingClient
from kafscale.client.client import Client
from kafscale.client.idempotent_appender import UNTOLD, Appender, producer_id_of
from kafscale.client.partition import Partition
from kafscale.client.security import PLAINTEXT, Security
from kafscale.client.topics import led
from kafscale.errors import InvalidRequestError
from kafscale.net.host_port import Address
from kafscale.records import BatchView, iterate
from kafscale.spark.codec.decoder import Decoder
from kafscale.spark.jobs.restore.selection import Selection, rebuilt
from kafscale.spark.plan.task_planner import Slice
from kafscale.spark.read.slice_reader import BatchGroup, SliceReader
from kafscale.spark.source.columns import Columns
from kafscale.spark.source.location import Location

_TIMES: Final = Columns(("offset", "timestamp"))
_BEGIN_AGAIN: Final = (
    "the source has changed since the restore began; delete the new topic and begin again"
)


class RestoreItem(msgspec.Struct, frozen=True):
    """A partition to restore; it travels to the task that does it."""

    location: Location
    source: Slice
    until_ms: int | None
    bootstrap: tuple[Address, ...]
    target: str
    producer_id: int
    security: Security = PLAINTEXT

    @property
    def selection(self) -> Selection:
        return Selection(self.source.start_offset, self.source.end_offset, self.until_ms)


class Restored(msgspec.Struct):
    """What became of a partition."""

    partition: int
    record_count: int = 0
    """Those that the new partition holds now."""
    written_count: int = 0
    """Those of them that this run has written."""
    written_bytes: int = 0
    batch_count: int = 0
    rebuilt_count: int = 0
    """The batches that could not be copied as they were."""
    left_out_count: int = 0
    """Offsets of the source that were not chosen, or hold no record."""


def identity(topic_id: bytes, source: Slice, until_ms: int | None) -> int:
    """The producer of a partition: whoever restores the same into the same topic is the same one.

    The end of the source is part of it only through the time: a run without one goes on where the
    one before it ended, although the source has grown.
    """
    return producer_id_of(
        "restore", topic_id, source.topic, source.partition, source.start_offset, until_ms
    )


def restore_partition(item: RestoreItem, step: Callable[[str], None] = lambda _: None) -> Restored:
    """Restore a partition; `step` is told what was done, for tests that stop there."""
    with item.location.open() as store, BlockingClient(item.bootstrap, item.security) as client:
        partition, there = client.run(lambda cluster: _open(cluster, item))
        step("opened")
        reader = SliceReader(store, item.location.namespace)
        copy = _Copy(item, client, partition, there, step)
        for found in reader.read(item.source):
            if _is_in_time(found, item):
                for batch in found.batches:
                    copy.take(batch)
        return copy.finish()


class _There:
    """What the new partition holds when a run begins."""

    def __init__(self, end_offset: int, last: BatchView | None) -> None:
        self.end_offset = end_offset
        records = iterate(last) if last is not None else ()
        self._last = {record.offset: record for record in records}
        self._last_offset = min(self._last, default=end_offset)

    def pass_over(self, offset: int, batch: BatchView) -> tuple[int, bytearray | None]:
        """How many records of a batch are there already, from an offset on; and the others."""
        if offset + batch.count <= self._last_offset:
            return batch.count, None
        records = list(iterate(batch))
        known_count = min(self.end_offset - offset, len(records))
        for index, record in enumerate(records[:known_count], offset):
            known = self._last.get(index)
            if known is not None and msgspec.structs.replace(record, offset=index) != known:
                raise InvalidRequestError(
                    f"the record at offset {index} differs from the source's: {_BEGIN_AGAIN}"
                )
        return known_count, rebuilt(records[known_count:], batch.codec)


class _Copy:
    """The way of the chosen records into the new partition."""

    def __init__(
        self,
        item: RestoreItem,
        client: BlockingClient,
        partition: Partition,
        there: _There,
        step: Callable[[str], None],
    ) -> None:
        self._item = item
        self._selection = item.selection
        self._client = client
        self._there = there
        self._step = step
        self._appender = Appender(partition, item.producer_id, there.end_offset)
        self._next_offset = 0
        """Of the next record in the new partition."""
        self._sent_offsets: list[int] = []
        """Where the batches are to come that were not acknowledged yet."""
        self._result = Restored(item.source.partition)

    def take(self, batch: BatchView) -> None:
        chosen = self._selection.chosen(batch)
        is_rebuilt = not self._selection.is_whole(batch)
        if chosen is not None and self._next_offset < self._there.end_offset:
            known_count, chosen = self._there.pass_over(self._next_offset, BatchView(chosen))
            self._next_offset += known_count
            is_rebuilt = True
        if chosen is None:
            return
        self._result.batch_count += 1
        self._result.rebuilt_count += is_rebuilt
        self._result.written_bytes += len(chosen)
        self._sent_offsets.append(self._next_offset)
        self._next_offset += BatchView(chosen).count
        self._confirm(self._client.run(lambda _: self._appender.add(chosen)))

    def finish(self) -> Restored:
        self._confirm(self._client.run(lambda _: self._appender.flush()))
        if self._next_offset < self._there.end_offset:
            raise InvalidRequestError(
                f"{self._item.target}/{self._item.source.partition} holds"
                f" {self._there.end_offset} records, the source {self._next_offset}: {_BEGIN_AGAIN}"
            )
        self._result.record_count = self._next_offset
        self._result.written_count = self._next_offset - self._there.end_offset
        self._result.left_out_count = self._item.source.count - self._next_offset
        return self._result

    def _confirm(self, offsets: list[int]) -> None:
        """Check that batches came to where they belong."""
        if not offsets:
            return
        for offset, wanted in zip(offsets, self._sent_offsets, strict=True):
            if offset not in {wanted, UNTOLD}:
                raise InvalidRequestError(
                    f"somebody else writes to {self._item.target}/{self._item.source.partition}:"
                    f" a batch came to offset {offset} instead of {wanted}"
                )
        self._sent_offsets.clear()
        self._step("appended")


def _is_in_time(found: BatchGroup, item: RestoreItem) -> bool:
    """Whether some batches may hold a record in time, found out in compiled code."""
    until_ms, source = item.until_ms, item.source
    if until_ms is None or any(batch.max_timestamp_ms <= until_ms for batch in found.batches):
        return True
    return any(
        int(part.column("timestamp").cast("int64").to_numpy().min()) <= until_ms * 1000
        for part in Decoder(_TIMES).decode_in_parts(
            found.key,
            source.topic,
            source.partition,
            found.batches,
            source.start_offset,
            source.end_offset,
        )
    )


async def _open(client: Client, item: RestoreItem) -> tuple[Partition, _There]:
    topic = await led(client, item.target)
    partition = Partition(client, topic, item.source.partition)
    _, end_offset = await partition.bounds()
    return partition, _There(end_offset, await partition.last_batch())
