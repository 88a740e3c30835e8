"""`RollScheduler`: decides when logs are rolled, and limits the memory of tails and the WAL size.

    reason     when
    bytes      the log has enough records for a segment
    age        its oldest unrolled record has reached the age limit of the topic or the broker
    memory     unrolled records take more than half of `tail_bytes_max`
    wal        the WAL is larger than `wal_bytes_max`, and this log pins its oldest object
    explicit   a flush was requested, or the broker stops
    release    another broker takes the log over
    takeover   its records are in the WAL of an ended session, which cannot be deleted before
    retention  all of its unrolled records have expired
    state      after a crash, the metadata store does not know all segments

Rolled records stay in memory as a cache for readers, within `tail_bytes_max` and a part that may be
borrowed from the block cache, which would hold the same records. The oldest are evicted first.

Invariant: a log whose rolls fail does not delay the others. It is scheduled again after a pause of
its own, which doubles with every failure.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import merge
from random import Random

from kafscale.aio.backoff import Backoff
from kafscale.errors import OperatingError
from kafscale.observability.logging import get_logger
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.segments.segment_writer import RollReason, SegmentWriter
from kafscale.storage.wal.sealed_object import SealedObject
from kafscale.storage.wal.trimmer import DurableObject, WalTrimmer

logger = get_logger(__name__)

TICK_SECONDS = 1.0
WORKERS = 4
"""Concurrent rolls: enough to hide the store's latency, few enough to bound memory."""

RETRY_SECONDS_MAX = 30.0
"""The longest pause before the roll of a log that failed is tried again."""

MARKER_DELAY_MS = 60_000
"""How long the WAL has had no records when an object without records says what is trimmed."""

UNROLLED_SHARE_MAX = 0.5
"""Share of `tail_bytes_max` for unrolled records; it also limits the WAL, which holds the same."""

MEMORY_FULL_FACTOR = 1.5
"""Memory is full when unrolled records exceed this multiple of `tail_bytes_max`: with a slow store,
producers are throttled before the broker runs out of memory."""

EVICTION_HEADROOM_SHARE = 0.1
"""Share of `tail_bytes_max` to evict beyond need, so that evictions are rare."""


@dataclass(frozen=True, kw_only=True)
class RollLimits:
    """Limits that the scheduler enforces."""

    tail_bytes_max: int
    wal_bytes_max: int
    segment_age_ms_max: int
    borrowed_bytes_max: int = 0
    """How much block cache memory tails may use for rolled records."""


class RollScheduler:
    """Rolls logs in the background."""

    def __init__(
        self,
        writer: SegmentWriter,
        trimmer: WalTrimmer,
        memory: TailMemory,
        limits: RollLimits,
        *,
        logs: Callable[[], Iterable[PartitionLog]],
        clock: Callable[[], int],
        borrow: Callable[[int], None],
        seal_marker: Callable[[], None],
        random: Random,
    ) -> None:
        """`borrow` is called with the number of bytes that tails use of the block cache.

        `seal_marker` writes a WAL object that says which objects are trimmed.
        """
        self._writer = writer
        self._trimmer = trimmer
        self._memory = memory
        self._limits = limits
        self._logs = logs
        self._clock = clock
        self._borrow = borrow
        self._seal_marker = seal_marker
        self._random = random
        self._durable_ms = 0
        """When the last WAL object became durable."""
        self._requests: asyncio.Queue[tuple[PartitionLog, RollReason]] = asyncio.Queue()
        self._requested: set[PartitionLog] = set()
        self._failing: dict[PartitionLog, Backoff] = {}
        """Logs whose last roll failed, with the pauses before the next try."""

    # --- decisions ------------------------------------------------------------------------------

    def add_durable_object(self, sealed: SealedObject) -> None:
        """Register a WAL object whose records have just become visible."""
        self._durable_ms = self._clock()
        pins = {log: run.last_offset for log, run in sealed.runs}
        header = sealed.header
        self._trimmer.add(
            DurableObject(sealed.key, header.sequence, sealed.size_bytes, pins, header.trimmed_to)
        )
        for log, _ in sealed.runs:
            if log.tail.unrolled_bytes >= log.settings.segment_bytes:
                self.schedule_roll(log, RollReason.BYTES)
        self.enforce_memory_limit()

    def check_due(self) -> None:
        """Schedule rolls that are due by age, state or WAL size."""
        now_ms = self._clock()
        for log in self._logs():
            since_ms = log.oldest_unrolled_ms
            if since_ms is not None:
                age_ms_max = min(self._limits.segment_age_ms_max, log.settings.segment_ms)
                if now_ms - since_ms >= age_ms_max:
                    self.schedule_roll(log, RollReason.AGE)
            if not log.is_saved:
                self.schedule_roll(log, RollReason.STATE)
        if self._trimmer.size_bytes > self._limits.wal_bytes_max:
            for log in self._trimmer.logs_pinning_oldest():
                self.schedule_roll(log, RollReason.WAL)
        self.enforce_memory_limit()
        self._trimmer.notify_rolled()
        self._request_marker(now_ms)

    def _request_marker(self, now_ms: int) -> None:
        """Let the WAL say which objects are trimmed, if it has had no records for a while."""
        is_idle = now_ms - self._durable_ms >= MARKER_DELAY_MS
        if is_idle and self._trimmer.needs_marker:
            self._durable_ms = now_ms
            self._seal_marker()

    def is_memory_full(self) -> bool:
        """Whether unrolled records use too much memory to accept more."""
        return self._memory.pinned_bytes > self._limits.tail_bytes_max * MEMORY_FULL_FACTOR

    def enforce_memory_limit(self) -> None:
        """Evict rolled records and schedule rolls, to keep tails within their memory limit."""
        memory, limits = self._memory, self._limits
        if memory.unrolled_bytes > limits.tail_bytes_max * UNROLLED_SHARE_MAX:
            self._roll_largest()
        excess_bytes = memory.used_bytes - limits.tail_bytes_max - limits.borrowed_bytes_max
        if excess_bytes > 0:
            self._evict(excess_bytes + int(limits.tail_bytes_max * EVICTION_HEADROOM_SHARE))
        if memory.pinned_bytes > limits.tail_bytes_max:
            self._roll_largest()
        beyond_bytes = memory.used_bytes - limits.tail_bytes_max
        self._borrow(min(max(beyond_bytes, 0), limits.borrowed_bytes_max))

    def _evict(self, size_bytes: int) -> None:
        """Evict `size_bytes` of rolled records, the oldest of all logs first."""
        tails = [log.tail for log in self._logs() if log.tail.runs]
        last_arrival = -1
        for arrival, cost_bytes in merge(*(tail.evictable() for tail in tails)):
            last_arrival = arrival
            size_bytes -= cost_bytes
            if size_bytes <= 0:
                break
        for tail in tails:
            tail.evict(last_arrival)

    def _roll_largest(self) -> None:
        """Schedule the largest logs, until half of the unrolled bytes are scheduled."""
        goal_bytes = self._memory.unrolled_bytes // 2
        logs = [log for log in self._logs() if log.tail.unrolled_bytes]
        for log in sorted(logs, key=lambda log: log.tail.unrolled_bytes, reverse=True):
            if goal_bytes <= 0:
                break
            goal_bytes -= log.tail.unrolled_bytes
            self.schedule_roll(log, RollReason.MEMORY)

    # --- rolling --------------------------------------------------------------------------------

    def schedule_roll(self, log: PartitionLog, reason: RollReason) -> None:
        """Roll a log soon; a log that is already scheduled is not scheduled again."""
        if log not in self._requested:
            self._requested.add(log)
            self._requests.put_nowait((log, reason))

    async def roll(self, log: PartitionLog, reason: RollReason) -> None:
        """Roll everything that is below the high watermark now, or raise `OperatingError`."""
        end_offset = log.high_watermark
        try:
            while log.tail.rolled_offset < end_offset or not log.is_saved:
                if not await self._writer.roll(log, reason):
                    break
        finally:
            self._trimmer.notify_rolled()
            self.enforce_memory_limit()

    async def run(self) -> None:
        """Roll scheduled logs and trim the WAL, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())
            group.create_task(self._trimmer.run())
            while True:
                self.check_due()
                await asyncio.sleep(TICK_SECONDS)

    async def _work(self) -> None:
        while True:
            log, reason = await self._requests.get()
            try:
                await self._roll_scheduled(log, reason)
            except OperatingError as error:
                self._schedule_retry(log, reason, error)
                continue
            except Exception:
                # Task boundary: an error of one log must not stop the others from being rolled.
                logger.exception("roll failed", topic=log.topic, partition=log.partition)
            # Only now: during the roll, every new batch may still find the log due.
            self._failing.pop(log, None)
            self._requested.discard(log)

    def _schedule_retry(self, log: PartitionLog, reason: RollReason, error: OperatingError) -> None:
        """Roll a log again after a pause; the WAL keeps its records meanwhile."""
        backoff = self._failing.setdefault(
            log, Backoff(self._random, max_seconds=RETRY_SECONDS_MAX)
        )
        pause_seconds = backoff.next_seconds()
        logger.warning(
            "segment not written",
            topic=log.topic,
            partition=log.partition,
            error=str(error),
            tries=backoff.tries,
            retry_in_seconds=round(pause_seconds, 3),
        )
        asyncio.get_running_loop().call_later(
            pause_seconds, self._requests.put_nowait, (log, reason)
        )

    async def _roll_scheduled(self, log: PartitionLog, reason: RollReason) -> None:
        if reason is RollReason.BYTES:
            await self._roll_full(log)
        elif reason is RollReason.STATE:
            await self._writer.save(log)
        else:
            await self.roll(log, reason)

    async def _roll_full(self, log: PartitionLog) -> None:
        while log.tail.unrolled_bytes >= log.settings.segment_bytes:
            if not await self._writer.roll(log, RollReason.BYTES):
                break
        self._trimmer.notify_rolled()
