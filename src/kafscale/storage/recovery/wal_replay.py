"""Replays fenced WAL streams into the tails of logs.

The records of a log may be spread over many streams, because each owner wrote to its own. They are
applied in offset order across streams; records that segments or other streams already provided are
skipped.

A damaged object with a successor was acknowledged: this is logged as an error, and the rest is
read. A damaged object at the end of a stream was never acknowledged. An object deleted meanwhile
raises `ObjectNotFoundError`: its records are in segments that may be newer than the opened logs.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from operator import attrgetter

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.observability.logging import get_logger
from kafscale.storage.formats.object_keys import parse_wal
from kafscale.storage.formats.verification import decode_wal_object
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.wal.streams import Stream

logger = get_logger(__name__)

PARALLEL_READS_MAX = 16
"""Concurrent reads: enough to hide the store's latency, few enough to bound memory."""


class OffsetGap(msgspec.Struct, frozen=True, gc=False):
    """Offsets of a log that were acknowledged but are found nowhere."""

    log: PartitionLog
    from_offset: int
    to_offset: int

    def log_missing(self) -> None:
        logger.error(
            "offsets missing",
            topic=self.log.topic,
            partition=self.log.partition,
            from_offset=self.from_offset,
            to_offset=self.to_offset,
        )


KnownRanges = dict[str, list[tuple[bytes, int, int]]]
"""Ranges by object key: topic id, partition and last offset."""


class WalReplay:
    """Reads streams for a set of logs; each object is read once."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        logs: Iterable[PartitionLog],
        known_ranges: KnownRanges,
    ) -> None:
        """Objects whose known ranges are not needed are skipped; ranges that are read are added."""
        self._store = store
        self._namespace = namespace
        self._logs = {(log.topic_id, log.partition): log for log in logs}
        self._known_ranges = known_ranges
        self._runs: dict[PartitionLog, list[BatchRun]] = defaultdict(list)
        self.recovered_bytes = 0

    async def read(self, streams: Sequence[Stream]) -> None:
        """Collect the records of the streams that are not in the logs' segments."""
        newest = {stream.acknowledged[-1].key for stream in streams if stream.acknowledged}
        items = (
            item
            for stream in streams
            for item in stream.with_records
            if self._may_contain_records(item.key)
        )
        async with aclosing(self._read_objects(items)) as objects:
            async for item, data in objects:
                self._collect(item.key, data, is_last=item.key in newest)

    def apply(self, now_ms: int) -> list[OffsetGap]:
        """Append the collected records to the logs; return the gaps between them."""
        gaps = []
        for log, runs in self._runs.items():
            for run in sorted(runs, key=attrgetter("base_offset")):
                known_to = max(log.end_offset, log.start_offset)
                if run.base_offset > known_to:
                    gaps.append(OffsetGap(log, known_to, run.base_offset))
                log.recover(run, now_ms)
        self._runs.clear()
        return gaps

    async def _read_objects(
        self, items: Iterator[ObjectInfo]
    ) -> AsyncGenerator[tuple[ObjectInfo, memoryview], None]:
        """Yield objects in order with their data; reads ahead concurrently."""
        reads: deque[tuple[ObjectInfo, asyncio.Task[memoryview]]] = deque()
        try:
            while True:
                for item in islice(items, PARALLEL_READS_MAX - len(reads)):
                    reads.append((item, asyncio.create_task(self._store.get(item.key))))
                if not reads:
                    return
                item, read = reads.popleft()
                yield item, await read
        finally:
            for _, read in reads:
                read.cancel()
            await asyncio.gather(*(read for _, read in reads), return_exceptions=True)

    def _may_contain_records(self, key: str) -> bool:
        """Whether an object may have records for the logs; True if its ranges are unknown."""
        ranges = self._known_ranges.get(key)
        return ranges is None or any(
            (log := self._logs.get((topic_id, partition))) is not None
            and last_offset >= log.end_offset
            for topic_id, partition, last_offset in ranges
        )

    def _collect(self, key: str, data: memoryview, *, is_last: bool) -> None:
        """Keep copies of the records for the logs, so that the object's memory can be freed."""
        try:
            object_ = decode_wal_object(key, data, parse_wal(self._namespace, key))
        except DamagedObjectError as error:
            report = logger.warning if is_last else logger.error
            report("damaged WAL object skipped", key=key, reason=error.reason, last=is_last)
            return
        self._known_ranges[key] = [
            (range_.topic_id, range_.partition, range_.last_offset) for range_ in object_.ranges
        ]
        for range_ in object_.ranges:
            log = self._logs.get((range_.topic_id, range_.partition))
            if log is not None and range_.last_offset >= log.recovery_offset:
                self._runs[log].append(BatchRun.parse(object_.body(range_)))
                self.recovered_bytes += range_.length
