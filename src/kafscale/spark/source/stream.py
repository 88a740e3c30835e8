"""The source `kafscale` as a stream: what is new in a log since the last time, again and again.

Spark keeps one reader in a process of its own as long as a query runs, and asks it, for each step:
how far can it go, and what is to be read up to there. The laws:

* Offsets are Spark's to remember, in its checkpoint, and nowhere else. They are JSON as that of the
  Kafka source, and equal offsets are equal text.
* The store is looked at once a step.
* A stream that begins at the latest offset reads nothing in its first step. Spark does not write
  down where a stream began, only where a step ended; so everything after that is read exactly once,
  even if the first steps fail.
* Under `Trigger.AvailableNow`, nothing is read beyond what was there at the beginning.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafscale.errors import OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.spark.log.bucket_listing import BucketLister
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets, TopicPartition
from kafscale.spark.plan.offsets import Offsets, decode, encode, is_latest, resolve
from kafscale.spark.source import microbatch
from kafscale.spark.source.query import Query
from kafscale.storage.objects.blocking import BlockingObjectStore

log = get_logger(__name__)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes, step by step."""

    def __init__(self, query: Query, clock: Callable[[], int] = now_ms) -> None:
        self._query = query
        self._clock = clock
        self._bound = query.options.stream_start()
        self._store: BlockingObjectStore | None = None
        self._lister: BucketLister | None = None
        self._seen: OffsetMap | None = None
        self._initial: Offsets | None = None
        self._has_stepped = False
        self._target: Offsets | None = None
        self._stepped_ms: int | None = None

    # --- how far to go ------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name.
        """Where a new stream begins: the same, however often it is asked."""
        if self._initial is None:
            partitions = self._look()
            assert self._store is not None
            search = self._query.search(self._store, partitions)
            side = self._query.options.starting_side
            self._initial = resolve(self._bound, partitions, side, search)
        return encode(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name.
        """What the options allow a step; Spark knows one limit only, and we know the other."""
        options = self._query.options
        if options.offsets_per_trigger_max is not None:
            return ReadMaxRows(options.offsets_per_trigger_max)
        if options.offsets_per_trigger_min is not None:
            return ReadMinRows(options.offsets_per_trigger_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name.
        self._target = {place: found.end_offset for place, found in self._look().items()}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next step ends; where it starts, if there is nothing to do."""
        begun = decode(start)
        partitions = self._look()
        is_first, self._has_stepped = not self._has_stepped, True
        if is_first and is_latest(self._bound) and begun == self._initial:
            return encode(begun)
        end = self._available(begun, partitions)
        if isinstance(limit, ReadAllAvailable):
            return encode(end)
        if self._waits(microbatch.count(begun, end, partitions)):
            return encode(begun)
        if isinstance(limit, ReadMaxRows):
            end = microbatch.limit(begun, end, partitions, limit.max_rows)
        return encode(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name.
        """What there is, for Spark's reports of a query's progress."""
        if self._seen is None:
            return None
        return encode({place: found.end_offset for place, found in self._partitions().items()})

    def _available(
        self, begun: Offsets, partitions: Mapping[TopicPartition, PartitionOffsets]
    ) -> Offsets:
        """The ends of all partitions, as far as the trigger lets them be seen."""
        if self._target is None:
            return {place: found.end_offset for place, found in partitions.items()}
        end: Offsets = {}
        for place, found in partitions.items():
            reached = begun.get(place, 0)
            target = self._target.get(place, 0)
            if place in self._target or place in begun:
                # A stream that began at the latest offset may have done so beyond the target.
                is_beyond = target < reached <= found.end_offset
                end[place] = reached if is_beyond else min(target, found.end_offset)
        return end

    def _waits(self, new_count: int) -> bool:
        """Whether too little has come for a step, and there is time for more."""
        options = self._query.options
        if options.offsets_per_trigger_min is None or self._target is not None:
            return False
        now = self._clock()
        is_due = self._stepped_ms is None or now - self._stepped_ms >= options.trigger_delay_ms_max
        if new_count < options.offsets_per_trigger_min and not is_due:
            return True
        self._stepped_ms = now
        return False

    # --- what to read -------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a step."""
        begun, ended = decode(start), decode(end)
        if begun == ended:
            return []
        if not self._covers(ended):
            self._look()
        # A step whose end was never asked for is one that is tried again.
        is_first = begun == self._initial and not self._has_stepped
        ranges, losses = microbatch.ranges(begun, ended, self._partitions(), is_first=is_first)
        if losses and self._query.options.fail_on_data_loss:
            raise OffsetOutOfRangeError(
                f"{'; '.join(losses)}; set failOnDataLoss to false to go on with what is left"
            )
        for loss in losses:
            log.warning("records lost", loss=loss)
        assert self._seen is not None
        return self._query.plan(self._seen, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.rows(partition)

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- the log ------------------------------------------------------------------------------

    def _look(self) -> Mapping[TopicPartition, PartitionOffsets]:
        """The partitions as they are now."""
        if self._store is None or self._lister is None:
            self._store = self._query.location.open()
            self._lister = BucketLister(self._store, self._query.location.namespace)
        self._seen = self._query.list_offsets(self._lister)
        return self._partitions()

    def _partitions(self) -> Mapping[TopicPartition, PartitionOffsets]:
        """The partitions as they were seen last."""
        assert self._seen is not None
        return self._query.options.subscription.select(self._seen)

    def _covers(self, offsets: Offsets) -> bool:
        """Whether what was seen last reaches as far as these offsets."""
        if self._seen is None:
            return False
        seen = self._partitions()
        return all(
            place in seen and offset <= seen[place].end_offset for place, offset in offsets.items()
        )
