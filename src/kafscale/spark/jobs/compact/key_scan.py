"""The first phase of compaction, in a task: which keys there are, and where the newest of each is.

The laws, all of which err on the side of keeping records:

* What counts as newer is durable and below the high watermark, be it in the head or in the WAL.
* Records without a key have nothing newer. Transactions may have been aborted, so that what is in
  one makes nothing obsolete, and is kept itself.
* A partition of which a task could not read everything is told as such, and left as it is: a record
  whose key nobody has seen would look obsolete.
* A mark of deletion is told to have expired if the horizon that an earlier run has set is over.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from kafscale.errors import DamagedObjectError, OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.records.batch import DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from kafscale.spark.jobs.compact.key_hash import hash_keys, secret_of
from kafscale.spark.jobs.compact.latest_by_key import ROW, Newest, Rows, by_bucket, incomplete
from kafscale.spark.jobs.shared.record_scan import Scanned, chunks, scan
from kafscale.spark.plan.offset_map import TopicPartition
from kafscale.spark.plan.task_planner import Slice, Task
from kafscale.spark.read.slice_reader import SliceReader
from kafscale.spark.source.location import Location
from kafscale.storage.objects.blocking import BlockingObjectStore

log = get_logger(__name__)


class KeysWork(msgspec.Struct, frozen=True):
    """What all tasks of the first phase know."""

    location: Location
    tasks: Sequence[Task]
    places: Mapping[TopicPartition, int]
    """A number for each partition."""
    secret: bytes
    now_ms: int

    @property
    def buckets(self) -> int:
        """Into how many parts keys are shared out: each so gets as many as a task finds."""
        return max(len(self.tasks), 1)


def newest_of(work: KeysWork, index: int) -> Iterator[tuple[int, bytes]]:
    """The rows that the task of an index finds, shared out by their keys."""
    gathered = Newest()
    with work.location.open() as store:
        for part in work.tasks[index].slices:
            try:
                rows = _read(work, store, part)
            except (OffsetOutOfRangeError, DamagedObjectError) as error:
                log.warning(
                    "partition is not compacted",
                    topic=part.topic,
                    partition=part.partition,
                    reason=str(error),
                )
                rows = incomplete(work.places[part.topic, part.partition])
            gathered.add(rows)
    yield from by_bucket(gathered.boiled_down(), work.buckets)


def _read(work: KeysWork, store: BlockingObjectStore, part: Slice) -> Rows:
    gathered = Newest()
    for found in SliceReader(store, work.location.namespace).read(part):
        for batches in chunks(found.batches):
            gathered.add(_rows(work, part, scan(found.key, batches)))
    return gathered.boiled_down()


def _rows(work: KeysWork, part: Slice, found: Scanned) -> Rows:
    attributes = found.entries["attributes"]
    first, second = np.empty((2, found.row_count), np.int64)
    secret = secret_of(work.secret)
    hash_keys(found.source, found.table.keys, found.row_count, secret, first, second)
    has_horizon = attributes & DELETE_HORIZON_BIT != 0
    is_past = has_horizon & (found.entries["base_timestamp_ms"] <= work.now_ms)
    rows = np.empty(found.row_count, ROW)
    rows["place"] = work.places[part.topic, part.partition]
    rows["first_hash"] = first
    rows["second_hash"] = second
    rows["oldest"] = rows["newest"] = found.offsets
    rows["is_expired"] = ~found.has_value & found.per_row(is_past)
    counts = (
        found.has_key
        & found.per_row(attributes & TRANSACTIONAL_BIT == 0)
        & (found.offsets >= part.start_offset)
        & (found.offsets < part.end_offset)
    )
    counting: Rows = rows[counts]
    return counting
