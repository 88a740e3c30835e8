"""The data source `kafscale` as a stream: reads the new records of each micro-batch.

Spark keeps one reader in a process of its own while a query runs. For each micro-batch it asks for
the end offsets and then for the tasks. Invariants:

* Offsets are stored only in Spark's checkpoint. They have the JSON form of the Kafka source, and
  equal offsets are equal text.
* The bucket is listed once per micro-batch.
* A stream that starts at the latest offset reads nothing in its first micro-batch. Spark stores
  only where a micro-batch ended, not where a stream started; so every later record is read exactly
  once, even if the first micro-batches fail.
* With `Trigger.AvailableNow`, nothing is read beyond the end offsets at the start of the query.
"""

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

from kafscale.aio.clock import clock
from kafscale.errors import OffsetOutOfRangeError
from kafscale.observability.logging import get_logger
from kafscale.spark.plan.offset_bounds import Offsets, decode, encode, is_latest, resolve
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.read.bucket_listing import BucketLister
from kafscale.spark.source import microbatch
from kafscale.spark.source.query import Query
from kafscale.storage.objects.blocking import BlockingObjectStore
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new records in micro-batches."""

    def __init__(self, query: Query, clock: Callable[[], int] = clock) -> None:
        self._query = query
        self._clock = clock
        self._bound = query.options.stream_start()
        self._store: BlockingObjectStore | None = None
        self._lister: BucketLister | None = None
        self._offset_map: OffsetMap | None = None
        self._initial_offsets: Offsets | None = None
        self._has_planned = False
        self._target: Offsets | None = None
        self._triggered_ms: int | None = None

    # --- offsets ------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name.
        """Return where a new stream starts; repeated calls return the same."""
        if self._initial_offsets is None:
            partitions = self._list()
            assert self._store is not None
            search = self._query.timestamp_search(self._store, partitions)
            side = self._query.options.starting_side
            self._initial_offsets = resolve(self._bound, partitions, side, search)
        return encode(self._initial_offsets)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name.
        """Return the limit of a micro-batch; Spark applies one, and `latestOffset` the other."""
        options = self._query.options
        if options.offsets_per_trigger_max is not None:
            return ReadMaxRows(options.offsets_per_trigger_max)
        if options.offsets_per_trigger_min is not None:
            return ReadMinRows(options.offsets_per_trigger_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name.
        self._target = _end_offsets(self._list())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next micro-batch; its start if there is nothing to read."""
        start_offsets = decode(start)
        partitions = self._list()
        is_first, self._has_planned = not self._has_planned, True
        if is_first and is_latest(self._bound) and start_offsets == self._initial_offsets:
            return encode(start_offsets)
        end = self._available(start_offsets, partitions)
        if isinstance(limit, ReadAllAvailable):
            return encode(end)
        if self._should_wait(microbatch.count(start_offsets, end, partitions)):
            return encode(start_offsets)
        if isinstance(limit, ReadMaxRows):
            end = microbatch.limit(start_offsets, end, partitions, limit.max_rows)
        return encode(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name.
        """Return the end of all partitions, for Spark's progress reports."""
        if self._offset_map is None:
            return None
        return encode(_end_offsets(self._partitions()))

    def _available(
        self, start_offsets: Offsets, partitions: Mapping[TopicPartition, PartitionOffsets]
    ) -> Offsets:
        """Return the end of all partitions, limited to the target of `Trigger.AvailableNow`."""
        if self._target is None:
            return microbatch.end_offsets(partitions, start_offsets)
        end: Offsets = {}
        for key, partition in partitions.items():
            reached = start_offsets.get(key, 0)
            target = self._target.get(key, 0)
            if key in self._target or key in start_offsets:
                # A stream that started at the latest offset may have started beyond the target.
                is_beyond = target < reached <= partition.high_watermark
                end[key] = reached if is_beyond else min(target, partition.end_offset)
        return end

    def _should_wait(self, new_count: int) -> bool:
        """Whether there are too few new offsets, and the trigger delay has not passed."""
        options = self._query.options
        if options.offsets_per_trigger_min is None or self._target is not None:
            return False
        now = self._clock()
        is_due = (
            self._triggered_ms is None or now - self._triggered_ms >= options.trigger_delay_ms_max
        )
        if new_count < options.offsets_per_trigger_min and not is_due:
            return True
        self._triggered_ms = now
        return False

    # --- tasks --------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of a micro-batch."""
        start_offsets, end_offsets = decode(start), decode(end)
        if start_offsets == end_offsets:
            return []
        if not self._covers(end_offsets):
            self._list()
        # If `latestOffset` was never called, Spark retries a micro-batch of an earlier run.
        is_first = start_offsets == self._initial_offsets and not self._has_planned
        ranges, losses = microbatch.ranges(
            start_offsets, end_offsets, self._partitions(), is_first=is_first
        )
        if losses and self._query.options.fail_on_data_loss:
            raise OffsetOutOfRangeError(
                f"{'; '.join(losses)}; set failOnDataLoss=false to continue without these records"
            )
        for loss in losses:
            logger.warning("records lost", loss=loss)
        assert self._offset_map is not None
        assert self._lister is not None
        loaded = self._query.load_aborted(self._lister, self._offset_map, ranges)
        return self._query.plan(loaded, ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._query.read(partition)

    def stop(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- offset map ---------------------------------------------------------------------------

    def _list(self) -> Mapping[TopicPartition, PartitionOffsets]:
        """List the bucket and return the subscribed partitions."""
        if self._store is None or self._lister is None:
            self._store = self._query.location.open()
            self._lister = BucketLister(self._store, self._query.location.namespace)
        self._offset_map = self._query.list_offsets(self._lister)
        return self._partitions()

    def _partitions(self) -> Mapping[TopicPartition, PartitionOffsets]:
        """Return the subscribed partitions of the last listing."""
        assert self._offset_map is not None
        return self._query.options.subscription.select(self._offset_map)

    def _covers(self, offsets: Offsets) -> bool:
        """Whether the last listing reaches these offsets."""
        if self._offset_map is None:
            return False
        partitions = self._partitions()
        return all(
            key in partitions and offset <= partitions[key].end_offset
            for key, offset in offsets.items()
        )


def _end_offsets(partitions: Mapping[TopicPartition, PartitionOffsets]) -> Offsets:
    return {key: partition.end_offset for key, partition in partitions.items()}
