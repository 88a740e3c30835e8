"""A partition with transactions in memory, as brokers write it, and a simple model of it."""

import enum
from collections.abc import Sequence
from typing import Self

from kafscale.records import BatchView, Codec, Record, build, iterate
from kafscale.records.control import ControlType, build_end_marker
from kafscale.spark.codec.columns import ALL
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.plan.task_planner import OffsetRange, Task, plan
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.read.task import read_task
from kafscale.storage.formats import object_keys, segment, wal_object
from kafscale.storage.formats.index_section import PRODUCERS_SECTION, TRANSACTIONS_SECTION
from kafscale.storage.log.state.producer_state import Producers
from kafscale.storage.log.state.transactions import (
    AbortedTransaction,
    OpenTransaction,
    TransactionSection,
    TransactionSpans,
)
from unit.spark.jobs.keyed_log import NOW_MS, TOPIC, TOPIC_ID, MemoryLocation

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


class IndexKind(enum.Enum):
    """What is left of the index of a segment."""

    COMPLETE = enum.auto()
    WITHOUT_SECTIONS = enum.auto()
    MISSING = enum.auto()


def value_of(record: Record) -> tuple[int, bytes | None]:
    return record.offset, record.value


class TransactionalLog:
    """One partition, to which tests append, and whose oldest batches they roll."""

    def __init__(self) -> None:
        self.location = MemoryLocation()
        self.store = self.location.open()
        self.batches: list[BatchView] = []
        self.opened: dict[int, int] = {}
        self.aborted: list[AbortedTransaction] = []
        self.rolled_count = 0
        self.segments: list[tuple[int, int]] = []
        """The numbers of the first batch of each segment, and of the first one after it."""
        self._logged_count = 0
        self._wal: dict[str, int] = {}
        """The end of the batches of each WAL object."""
        self._sequence = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    @property
    def next_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    # --- the log --------------------------------------------------------------------------------

    def append(
        self,
        producer_id: int,
        count: int = 1,
        *,
        transactional: bool = True,
        keys: Sequence[bytes | None] = (),
        codec: Codec = Codec.NONE,
    ) -> BatchView:
        base = self.next_offset
        records = [
            Record(base + number, NOW_MS + base + number, key, b"value %d" % (base + number))
            for number, key in enumerate(keys or [None] * count)
        ]
        if transactional:
            self.opened.setdefault(producer_id, base)
        batch = build(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=transactional,
        )
        return self._add(batch)

    def end(self, producer_id: int, control_type: ControlType) -> BatchView:
        offset = self.next_offset
        first = self.opened.pop(producer_id, None)
        if first is not None and control_type is ABORT:
            self.aborted.append(AbortedTransaction(producer_id, first, offset))
        return self._add(build_end_marker(producer_id, 0, control_type, 0, NOW_MS + offset))

    def _add(self, encoded: bytearray) -> BatchView:
        batch = BatchView(encoded)
        batch.stamp(self.next_offset, 0)
        self.batches.append(batch)
        return batch

    # --- the bucket -----------------------------------------------------------------------------

    def flush(self) -> None:
        """Write all new batches as one WAL object."""
        new = self.batches[self._logged_count :]
        if not new:
            return
        pieces = [
            wal_object.PartitionData(
                TOPIC_ID,
                TOPIC,
                0,
                each.buffer,
                each.base_offset,
                each.last_offset,
                each.max_timestamp_ms,
                each.is_transactional or each.is_control,
            )
            for each in new
        ]
        key = object_keys.wal_key(self.location.namespace, 0, 0, self._sequence)
        self.store.put(key, wal_object.encode(wal_object.Header(0, 0, self._sequence, 0), pieces))
        self._sequence += 1
        self._logged_count = len(self.batches)
        self._wal[key] = self.next_offset

    def roll(self, count: int, index: IndexKind = IndexKind.COMPLETE) -> None:
        """Write the oldest batches of the WAL as a segment, and delete what is in segments."""
        assert self.rolled_count + count <= self._logged_count
        start, self.rolled_count = self.rolled_count, self.rolled_count + count
        self.segments.append((start, self.rolled_count))
        end = self._put_segment(start, self.rolled_count, index)
        for key, wal_end in list(self._wal.items()):
            if wal_end <= end and key != max(self._wal):
                self.store.delete([key])
                del self._wal[key]

    def merge(self, first: int, last: int, index: IndexKind, *, is_complete: bool) -> None:
        """Replace segments, by number, by one; without `is_complete`, only its objects are written.

        Then the others are still there, as long as the broker has no time to go on, or after its
        crash.
        """
        start, stop = self.segments[first][0], self.segments[last][1]
        end = self._put_segment(start, stop, index)
        if not is_complete:
            return
        place = (self.location.namespace, TOPIC, 0)
        base = self.batches[start].base_offset
        self.store.put(object_keys.merged_key(*place, base, end), [b"merged"], create=False)
        for number, _ in self.segments[first + 1 : last + 1]:
            replaced = self.batches[number].base_offset
            self.store.delete(
                [object_keys.index_key(*place, replaced), object_keys.segment_key(*place, replaced)]
            )
        self.segments[first : last + 1] = [(start, stop)]

    def _put_segment(self, start: int, stop: int, index: IndexKind) -> int:
        """Write batches, by number, as a segment; return where it ends."""
        batches = self.batches[start:stop]
        builder = segment.Builder(NOW_MS, 1, compression=None, prior_max_timestamp_ms=None)
        for each in batches:
            builder.append(each)
        base, end = batches[0].base_offset, batches[-1].next_offset
        section = self.section(base, end)
        sections = {} if section.is_empty else {TRANSACTIONS_SECTION: section.encode()}
        if index is IndexKind.WITHOUT_SECTIONS:
            built = builder.finish()
        else:
            built = builder.finish({PRODUCERS_SECTION: Producers().snapshot_at(end), **sections})
        place = (self.location.namespace, TOPIC, 0)
        if sections:
            self.store.put(object_keys.transactions_key(*place), [b"1"], create=False)
        self.store.put(object_keys.segment_key(*place, base), built.parts, create=False)
        if index is not IndexKind.MISSING:
            self.store.put(object_keys.index_key(*place, base), [built.index], create=False)
        return end

    def section(self, base_offset: int, end_offset: int) -> TransactionSection:
        """What the index of a segment says about transactions."""
        opened, aborted = self.state_at(end_offset)
        return TransactionSection(
            [
                OpenTransaction(producer_id, 0, first, NOW_MS)
                for producer_id, first in sorted(opened.items(), key=lambda each: each[1])
            ],
            TransactionSpans.of(each for each in aborted if each.last_offset >= base_offset),
            [],
        )

    def state_at(self, end_offset: int) -> tuple[dict[int, int], list[AbortedTransaction]]:
        opened: dict[int, int] = {}
        for batch in self.batches:
            if batch.base_offset < end_offset and batch.is_transactional:
                if batch.is_control:
                    opened.pop(batch.producer_id, None)
                else:
                    opened.setdefault(batch.producer_id, batch.base_offset)
        return opened, [each for each in self.aborted if each.last_offset < end_offset]

    # --- reading --------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        return min(self.opened.values(), default=self.next_offset)

    def committed(self) -> list[tuple[int, bytes | None]]:
        """What a reader of committed records gets."""
        return [
            value_of(record)
            for batch in self.batches
            if not batch.is_control and not (batch.is_transactional and self._is_aborted(batch))
            for record in iterate(batch)
            if record.offset < self.last_stable_offset
        ]

    def decided(self) -> list[tuple[int, bytes | None]]:
        """All records but those of aborted and of open transactions."""
        return [
            value_of(record)
            for batch in self.batches
            if not batch.is_control
            and not (batch.is_transactional and (self._is_aborted(batch) or self._is_open(batch)))
            for record in iterate(batch)
        ]

    def everything(self) -> list[tuple[int, bytes | None]]:
        return [
            value_of(record)
            for batch in self.batches
            if not batch.is_control
            for record in iterate(batch)
        ]

    def _is_aborted(self, batch: BatchView) -> bool:
        return any(
            each.producer_id == batch.producer_id
            and each.first_offset <= batch.base_offset <= each.last_offset
            for each in self.aborted
        )

    def _is_open(self, batch: BatchView) -> bool:
        return batch.base_offset >= self.opened.get(batch.producer_id, self.next_offset)

    def lister(self) -> BucketLister:
        return BucketLister(self.store, self.location.namespace)

    def stored_offsets(self) -> list[int]:
        """Return the offsets of all stored records, aborted or not."""
        offset_map = self.lister().list([TOPIC])
        return [
            row["offset"]
            for task in plan(offset_map, [OffsetRange(TOPIC, 0, 0, self.next_offset)])
            for rows in read_task(self.location, task, ALL)
            for row in rows.to_pylist()
        ]

    def read(
        self,
        lister: BucketLister,
        offset_map: OffsetMap,
        start: int,
        end: int,
        *,
        with_open: bool = False,
        **how: int,
    ) -> list[tuple[int, bytes | None]]:
        """Return the offsets and values of committed records."""
        ranges = [OffsetRange(TOPIC, 0, start, end)]
        loaded = lister.load_aborted(offset_map, ranges, with_open=with_open)
        tasks: list[Task] = plan(loaded, ranges, **how)
        return [
            (row["offset"], row["value"])
            for task in tasks
            for rows in read_task(self.location, task, ALL)
            for row in rows.to_pylist()
        ]
