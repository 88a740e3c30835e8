"""Replays fenced WAL streams into the tails of logs.

The records of a log may be spread over many streams, because each owner wrote to its own. They are
applied in offset order across streams; records that segments or other streams already provided are
skipped. Objects are decoded in threads, and applied in short turns: see `recovered_run`.

A damaged object is never skipped in silence, wherever it is in a stream. A store makes an object
visible only when it is complete, so every object may have been acknowledged. (A local file that was
not forced to disk may have lost its end by a power failure.) It is read again, because the response
may have been damaged. Then it is logged as an error and copied to the quarantine. Its undamaged
batches are applied, and offsets of its other batches, which its tables contain, are missing: they
are not used again.

An object deleted meanwhile raises `ObjectNotFoundError`: its records are in segments that may be
newer than the opened logs.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from operator import attrgetter

import msgspec

from kafscale.errors import DamagedObjectError, OperatingError
from kafscale.observability.logging import get_logger
from kafscale.records import BatchView
from kafscale.storage.formats.object_keys import parse_wal
from kafscale.storage.formats.verification import (
    SalvagedRange,
    decode_wal_object,
    salvage_wal_object,
)
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.objects.store import ObjectInfo, ObjectStore
from kafscale.storage.quarantine import keep_copy
from kafscale.storage.recovery.recovered_run import new_pacer, recover_run
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


Ranges = list[tuple[bytes, int, int]]
"""The ranges of an object: topic id, partition and last offset."""

KnownRanges = dict[str, Ranges]
"""Ranges by object key."""

KNOWN_RANGES_MAX = 200_000
"""Limit of ranges that are remembered, about 40 MB; objects beyond it are read again."""


class _Content(msgspec.Struct, gc=False):
    """What an object has for the logs."""

    runs: list[tuple[PartitionLog, BatchRun]]
    known_ranges: Ranges


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
        self._known_count = sum(map(len, known_ranges.values()))
        self._runs: dict[PartitionLog, list[BatchRun]] = defaultdict(list)
        self._damaged_to: dict[PartitionLog, int] = {}
        """The end of the offsets that damaged objects had."""
        self.recovered_bytes = 0

    async def read(self, streams: Sequence[Stream]) -> None:
        """Collect the records of the streams that are not in the logs' segments."""
        items = (
            item
            for stream in streams
            for item in stream.with_records
            if self._may_contain_records(item.key)
        )
        async with aclosing(self._read_objects(items)) as objects:
            async for item, data in objects:
                try:
                    content = await asyncio.to_thread(self._decode, item.key, data)
                except DamagedObjectError:
                    content = await self._read_damaged(item.key)
                self._collect(item.key, content)

    async def apply(self, now_ms: int) -> list[OffsetGap]:
        """Append the collected records to the logs; return the gaps between them."""
        gaps = []
        pacer = new_pacer()
        for log in {**self._runs, **self._damaged_to}:
            for run in sorted(self._runs.pop(log, ()), key=attrgetter("base_offset")):
                known_to = max(log.end_offset, log.start_offset)
                if run.base_offset > known_to:
                    gaps.append(OffsetGap(log, known_to, run.base_offset))
                await recover_run(log, run, now_ms, pacer)
            known_to = max(log.end_offset, log.start_offset)
            damaged_to = self._damaged_to.get(log, 0)
            if damaged_to > known_to:
                gaps.append(OffsetGap(log, known_to, damaged_to))
                log.skip_to(damaged_to)
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

    def _decode(self, key: str, data: memoryview) -> _Content:
        """Copy the records for the logs, so that the object's memory can be freed."""
        object_ = decode_wal_object(key, data, parse_wal(self._namespace, key))
        content = _Content([], [])
        for range_ in object_.ranges:
            content.known_ranges.append((range_.topic_id, range_.partition, range_.last_offset))
            log = self._logs.get((range_.topic_id, range_.partition))
            if log is not None and range_.last_offset >= log.recovery_offset:
                content.runs.append((log, BatchRun.parse(object_.body(range_))))
        return content

    def _collect(self, key: str, content: _Content) -> None:
        ranges = content.known_ranges
        if ranges and self._known_count + len(ranges) <= KNOWN_RANGES_MAX:
            self._known_count += len(ranges)
            self._known_ranges[key] = ranges
        for log, run in content.runs:
            self._runs[log].append(run)
            self.recovered_bytes += len(run)

    # --- damage ---------------------------------------------------------------------------------

    async def _read_damaged(self, key: str) -> _Content:
        """Read an object again; if it is still damaged, find what is left of it."""
        data = await self._store.get(key)
        try:
            return await asyncio.to_thread(self._decode, key, data)
        except DamagedObjectError as error:
            reason = error.reason
        try:
            ranges = await asyncio.to_thread(salvage_wal_object, key, data)
        except DamagedObjectError:
            ranges = []  # It cannot be known which offsets of which partitions it had.
        logger.error(
            "damaged WAL object",
            key=key,
            reason=reason,
            ranges=len(ranges),
            batches_salvaged=sum(len(range_.batches) for range_ in ranges),
        )
        try:
            await keep_copy(self._store, self._namespace, key, data, reason)
        except OperatingError as error:
            logger.warning("object not kept in quarantine", key=key, error=str(error))
        return await asyncio.to_thread(self._salvage, ranges)

    def _salvage(self, ranges: Iterable[SalvagedRange]) -> _Content:
        content = _Content([], [])
        for range_ in ranges:
            log = self._logs.get((range_.topic_id, range_.partition))
            if log is not None and range_.last_offset >= log.recovery_offset:
                end_offset = range_.last_offset + 1
                self._damaged_to[log] = max(self._damaged_to.get(log, 0), end_offset)
                content.runs += [(log, run) for run in _contiguous_runs(range_.batches)]
        return content


def _contiguous_runs(batches: Sequence[BatchView]) -> Iterator[BatchRun]:
    start = 0
    for end in range(1, len(batches) + 1):
        if end == len(batches) or batches[end].base_offset != batches[end - 1].next_offset:
            yield BatchRun.from_batches(batches[start:end])
            start = end
