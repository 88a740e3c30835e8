"""Opens logs from segments and, if the last owner did not roll everything, from WAL streams.

`segment_recovery` reads the segments, `wal_replay` the streams.

Streams are listed before segments. A former owner that still runs can then only roll its records
and trim the WAL objects of rolled records. If it, or the dead stream cleaner, does so while the WAL
is read, the logs are opened again, because the missing records are now in segments.

A log that is said to be fully rolled, but ends elsewhere than its former owner left it, is opened
again with the WAL.

Missing offsets are accepted only after a second attempt. Then the gap is logged as an error and the
log is served without them, so that its other records remain readable.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import compress

import msgspec

from kafscale.errors import ObjectNotFoundError, StoreUnavailableError
from kafscale.observability.logging import get_logger
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.recovery.segment_recovery import PartitionToOpen, SegmentRecovery
from kafscale.storage.recovery.wal_replay import KnownRanges, OffsetGap, WalReplay
from kafscale.storage.wal.streams import Stream, Streams

logger = get_logger(__name__)

TRIES_MAX = 10
"""How often the WAL may change while it is read, before the opening fails."""

LOST_OWNER_MS = 60 * 60 * 1000
"""How long after an assignment the lost owner's stream must exist; it may be deleted later."""


class OpenedLogs(msgspec.Struct, frozen=True):
    """Logs with all recovered records, which do not accept appends yet."""

    logs: list[PartitionLog]
    recovered_bytes: int
    gaps: list[OffsetGap]

    def close(self) -> None:
        _close(self.logs)


class LogOpener:
    """Opens logs with all their records, also the empty logs of new topics."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        streams: Streams,
        segment_recovery: SegmentRecovery,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._streams = streams
        self._segment_recovery = segment_recovery
        self._clock = clock
        self._known_ranges: KnownRanges = {}
        """Ranges of WAL objects that were read; objects are immutable."""

    async def open(self, partitions: Sequence[PartitionToOpen]) -> OpenedLogs:
        """Open all logs completely, or none if the store fails."""
        is_second_attempt = False
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                opened_logs = await self._try(partitions)
            except ObjectNotFoundError as error:
                if not tries_left:
                    raise
                logger.warning("wal changed while it was read", error=str(error))
                continue
            unexpected = _unexpected_ends(opened_logs, partitions)
            if unexpected and tries_left:
                opened_logs.close()
                partitions = [
                    replace(each, fully_rolled=False) if each in unexpected else each
                    for each in partitions
                ]
                continue
            if not opened_logs.gaps or is_second_attempt or not tries_left:
                break
            opened_logs.close()
            is_second_attempt = True
        for gap in opened_logs.gaps:
            gap.log_missing()
        return opened_logs

    async def _try(self, partitions: Sequence[PartitionToOpen]) -> OpenedLogs:
        needs_wal = [not (partition.fully_rolled or partition.is_new) for partition in partitions]
        streams = await self._streams.fenced() if any(needs_wal) else []
        self._check_listed(streams, compress(partitions, needs_wal))
        opened = await self._segment_recovery.open(partitions, self._clock())
        try:
            unrolled = [log for log, needed in zip(opened, needs_wal, strict=True) if needed]
            replay = await self._read(streams, unrolled)
            gaps = await replay.apply(self._clock())
        except BaseException:
            _close(opened)
            raise
        for log, partition in zip(opened, partitions, strict=True):
            gaps += _extend_to_known_end(log, partition)
        return OpenedLogs(opened, replay.recovered_bytes, gaps)

    def _check_listed(
        self, streams: Sequence[Stream], partitions: Iterable[PartitionToOpen]
    ) -> None:
        """Raise unless the fenced streams of all lost owners are listed.

        Otherwise a store whose listing lags would hide acknowledged records.
        """
        oldest_ms = self._clock() - LOST_OWNER_MS
        expected = {
            partition.lost_owner for partition in partitions if partition.assigned_ms > oldest_ms
        }
        missing = expected - {(stream.broker_id, stream.epoch) for stream in streams} - {None}
        if missing:
            raise StoreUnavailableError(
                f"the fenced WAL streams of {sorted(filter(None, missing))} (broker, epoch) are"
                " not listed yet"
            )

    async def _read(self, streams: Sequence[Stream], logs: Sequence[PartitionLog]) -> WalReplay:
        replay = WalReplay(self._store, self._namespace, logs, self._known_ranges)
        await replay.read(streams)
        existing = {item.key for stream in streams for item in stream.acknowledged}
        self._known_ranges = {
            key: ranges for key, ranges in self._known_ranges.items() if key in existing
        }
        return replay


def _unexpected_ends(
    opened: OpenedLogs, partitions: Sequence[PartitionToOpen]
) -> list[PartitionToOpen]:
    """The logs that are not as their former owner released them, although fully rolled."""
    incomplete = {id(gap.log) for gap in opened.gaps}
    unexpected = []
    for log, partition in zip(opened.logs, partitions, strict=True):
        expected = partition.released_end
        if not partition.fully_rolled or expected is None:
            continue
        if log.end_offset != expected or id(log) in incomplete:
            logger.error(
                "released log has another end",
                topic=log.topic,
                partition=log.partition,
                end_offset=log.end_offset,
                expected=expected,
            )
            unexpected.append(partition)
    return unexpected


def _extend_to_known_end(log: PartitionLog, partition: PartitionToOpen) -> list[OffsetGap]:
    """Extend a log to the end in the metadata store; return the offsets that are missing."""
    known_to = max(log.end_offset, log.start_offset)
    if log.end_offset < partition.end_offset:
        log.skip_to(partition.end_offset)
    return (
        [OffsetGap(log, known_to, partition.end_offset)] if known_to < partition.end_offset else []
    )


def _close(logs: Sequence[PartitionLog]) -> None:
    for log in logs:
        log.close()
