"""The first phase of compaction: tasks find the latest offset of each key.

A row has the oldest and the latest offset of one key in one partition, and whether the latest
record is a tombstone whose delete horizon has passed. Rows of a key can be deduplicated in any
order and repeatedly, in the task that read them and after the shuffle. They are shuffled as bytes,
many at a time.

Invariants, all of which err on the side of keeping records:

* Every durable record below the last stable offset counts as newer, also in the head and in the
  WAL. Above it, transactions may still be aborted.
* Records without a key have no newer record. Records of aborted transactions make none obsolete.
* A partition that a task could not read completely is reported as incomplete and not rewritten: a
  record whose key was not read would look obsolete.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kafscale.errors import DamagedObjectError, OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.records.batch import DELETE_HORIZON_BIT
from kafscale.spark.codec.aborted_batches import AbortedBatches
from kafscale.spark.jobs.compact.key_hash import hash_keys, secret_of
from kafscale.spark.jobs.shared.record_scan import RecordScan, chunk_batches, scan
from kafscale.spark.plan.task_planner import Slice, Task
from kafscale.spark.read.location import Location
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

ROW: Final = np.dtype(
    [
        ("partition", "<i4"),
        ("first_hash", "<i8"),
        ("second_hash", "<i8"),
        ("oldest", "<i8"),
        ("latest", "<i8"),
        ("is_expired", "?"),
    ]
)
"""The number of a partition in the run, the hash of a key, and the offsets of its records."""

Rows = NDArray[np.void]

ROWS_MAX: Final = 1_000_000
"""How many rows to collect before deduplicating them."""

INCOMPLETE: Final = -1
"""The offset of the row that reports an incomplete partition."""


class KeyScan(msgspec.Struct, frozen=True):
    """What all tasks of the first phase share."""

    location: Location
    tasks: Sequence[Task]
    partitions: Mapping[TopicPartition, int]
    """The number of each partition."""
    secret: bytes
    now_ms: int

    @property
    def buckets(self) -> int:
        """How many buckets the shuffle has: as many as tasks, so that their sizes are similar."""
        return max(len(self.tasks), 1)


# --- rows -----------------------------------------------------------------------------------------


class LatestByKey:
    """Collects rows; its memory is bounded by the number of keys, not of records."""

    def __init__(self, rows_max: int = ROWS_MAX) -> None:
        self._rows_max = rows_max
        self._collected: list[Rows] = []
        self._count = 0
        self._limit = rows_max

    def add(self, rows: Rows) -> None:
        self._collected.append(rows)
        self._count += rows.size
        if self._count > self._limit:
            self._limit = self.rows().size + self._rows_max

    def rows(self) -> Rows:
        """Return one row for each key so far."""
        rows = deduplicate(np.concatenate([np.empty(0, ROW), *self._collected]))
        self._collected, self._count = [rows], rows.size
        return rows


def deduplicate(rows: Rows) -> Rows:
    """Return one row for each key of each partition."""
    if not rows.size:
        return rows
    fields = ("latest", "second_hash", "first_hash", "partition")
    ordered = rows[np.lexsort([rows[name] for name in fields])]
    is_start = np.ones(ordered.size, np.bool_)
    is_start[1:] = np.logical_or.reduce(
        [ordered[name][1:] != ordered[name][:-1] for name in fields[1:]]
    )
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], ordered.size) - 1
    unique: Rows = ordered[ends]
    unique["oldest"] = np.minimum.reduceat(ordered["oldest"], starts)
    return unique


def incomplete_row(partition: int) -> Rows:
    """Return the row that reports an incomplete partition."""
    return np.array([(partition, 0, 0, INCOMPLETE, INCOMPLETE, False)], ROW)


def split_by_bucket(rows: Rows, buckets: int) -> Iterator[tuple[int, bytes]]:
    """Split rows by the hash of their keys, so that all rows of a key meet in one task."""
    if not rows.size:
        return
    bucket_of = rows["first_hash"].astype(np.uint64) % np.uint64(buckets)
    ordered = np.argsort(bucket_of, kind="stable")
    numbers, starts = np.unique(bucket_of[ordered], return_index=True)
    for number, indexes in zip(numbers.tolist(), np.split(ordered, starts[1:]), strict=True):
        yield number, rows[indexes].tobytes()


def combine(chunks: Iterable[bytes]) -> Rows:
    """Return one row for each key of the shuffled rows of a bucket."""
    latest = LatestByKey()
    for chunk in chunks:
        latest.add(np.frombuffer(chunk, ROW))
    return latest.rows()


# --- task -----------------------------------------------------------------------------------------


def scan_keys(work: KeyScan, index: int) -> Iterator[tuple[int, bytes]]:
    """Run the task of an index; return its rows by bucket."""
    latest = LatestByKey()
    with work.location.open() as store:
        for part in work.tasks[index].slices:
            try:
                rows = _read(work, store, part)
            except (OffsetOutOfRangeError, DamagedObjectError) as error:
                logger.warning(
                    "partition is not compacted",
                    topic=part.topic,
                    partition=part.partition,
                    reason=str(error),
                )
                rows = incomplete_row(work.partitions[part.topic, part.partition])
            latest.add(rows)
    yield from split_by_bucket(latest.rows(), work.buckets)


def _read(work: KeyScan, store: BlockingObjectStore, part: Slice) -> Rows:
    latest = LatestByKey()
    aborted = AbortedBatches(part.aborted)
    for read in SliceReader(store, work.location.namespace).read(part):
        for batches in chunk_batches(read.batches):
            latest.add(_rows(work, part, scan(read.key, batches, aborted)))
    return latest.rows()


def _rows(work: KeyScan, part: Slice, records: RecordScan) -> Rows:
    attributes = records.entries["attributes"]
    first, second = np.empty((2, records.row_count), np.int64)
    secret = secret_of(work.secret)
    hash_keys(records.source, records.table.keys, records.row_count, secret, first, second)
    has_horizon = attributes & DELETE_HORIZON_BIT != 0
    is_past = has_horizon & (records.entries["base_timestamp_ms"] <= work.now_ms)
    rows = np.empty(records.row_count, ROW)
    rows["partition"] = work.partitions[part.topic, part.partition]
    rows["first_hash"] = first
    rows["second_hash"] = second
    rows["oldest"] = rows["latest"] = records.offsets
    rows["is_expired"] = ~records.has_value & records.repeat_per_row(is_past)
    counts = (
        records.has_key
        & (records.offsets >= part.start_offset)
        & (records.offsets < part.end_offset)
    )
    counted: Rows = rows[counts]
    return counted
