"""Upkeep: decides which logs are rolled and when, and keeps tails and the WAL within their bounds.

    reason     when
    bytes      a log has a segment's worth of records
    age        its oldest record has waited for as long as the topic, or the broker, allows
    memory     what waits for segments takes more than half of `tail_bytes_max`
    wal        the WAL is larger than `wal_bytes_max`, and this log holds its oldest object
    explicit   somebody asked: a flush, or a stop
    release    another broker is to serve the log
    takeover   its records are in the WAL of a dead broker, which can go only then
    state      segments are there that the metadata store does not know, after a crash

Records that segments hold already stay in memory for readers while there is room: in what is left
of `tail_bytes_max`, and in what may be borrowed from the memory for blocks of segments, which are
the same records for the same readers. What came first goes first.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import merge

from kafscale.observability.logging import get_logger
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.segments.segment_writer import SegmentWriter
from kafscale.storage.wal.trimmer import DurableObject, WalTrimmer
from kafscale.storage.wal.writer import SealedObject

log = get_logger(__name__)

TICK_SECONDS = 1.0
WORKERS = 2
"""How many segments are made at once: enough to hide the store, few enough to spare producers."""

UNROLLED = 0.5
"""Which part of the tails may wait for segments; the WAL holds the same, so this bounds it, too."""

FULL = 1.5
"""At which multiple of its bound memory is full of what waits for segments: a store that is slow
with them holds up producers before it exhausts the broker."""

RELIEF = 0.1
"""Which part of the tails' bound is freed beyond need, so that it is not done for every object."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What upkeep keeps to."""

    tail_bytes_max: int
    wal_bytes_max: int
    segment_age_ms_max: int
    borrowed_bytes_max: int = 0
    """How much of the memory for blocks tails may take besides, for what segments hold already."""


class Upkeep:
    """Rolls logs in the background; the only one who does."""

    def __init__(
        self,
        writer: SegmentWriter,
        trimmer: WalTrimmer,
        memory: TailMemory,
        bounds: Bounds,
        *,
        logs: Callable[[], Iterable[PartitionLog]],
        clock: Callable[[], int],
        borrow: Callable[[int], None],
    ) -> None:
        """`borrow` is told how many bytes of the memory for blocks are taken here."""
        self._writer = writer
        self._trimmer = trimmer
        self._memory = memory
        self._bounds = bounds
        self._logs = logs
        self._clock = clock
        self._borrow = borrow
        self._requests: asyncio.Queue[tuple[PartitionLog, str]] = asyncio.Queue()
        self._requested: set[PartitionLog] = set()

    # --- when ---------------------------------------------------------------------------------

    def on_durable(self, sealed: SealedObject) -> None:
        """Take note of a WAL object whose records have just become visible."""
        pins = {partition: run.last_offset for partition, run in sealed.runs}
        self._trimmer.add(DurableObject(sealed.key, sealed.size_bytes, pins, sealed.kept_until_ms))
        for partition, _ in sealed.runs:
            if partition.tail.unrolled_bytes >= partition.settings.segment_bytes:
                self.request(partition, "bytes")
        self.relieve()

    def tick(self) -> None:
        """Look for what has become due by time."""
        now_ms = self._clock()
        for partition in self._logs():
            since_ms = partition.oldest_unrolled_ms
            if since_ms is not None:
                age_ms_max = min(self._bounds.segment_age_ms_max, partition.settings.segment_ms)
                if now_ms - since_ms >= age_ms_max:
                    self.request(partition, "age")
            if not partition.is_saved:
                self.request(partition, "state")
        if self._trimmer.size_bytes > self._bounds.wal_bytes_max:
            for partition in self._trimmer.oldest_pins():
                self.request(partition, "wal")
        self.relieve()
        self._trimmer.consider()

    def is_full(self) -> bool:
        """Whether tails take so much memory that no more records can be taken."""
        return self._memory.pinned_bytes > self._bounds.tail_bytes_max * FULL

    def relieve(self) -> None:
        """Keep memory within its bound: evict what segments hold, and roll the rest in time."""
        memory, bounds = self._memory, self._bounds
        if memory.unrolled_bytes > bounds.tail_bytes_max * UNROLLED:
            self._roll_largest()
        excess_bytes = memory.used_bytes - bounds.tail_bytes_max - bounds.borrowed_bytes_max
        if excess_bytes > 0:
            self._evict(excess_bytes + int(bounds.tail_bytes_max * RELIEF))
        if memory.pinned_bytes > bounds.tail_bytes_max:
            self._roll_largest()
        beyond_bytes = memory.used_bytes - bounds.tail_bytes_max
        self._borrow(min(max(beyond_bytes, 0), bounds.borrowed_bytes_max))

    def _evict(self, size_bytes: int) -> None:
        """Let go of so many bytes that segments hold, of whichever logs: the oldest of all."""
        tails = [partition.tail for partition in self._logs() if partition.tail.runs]
        last_turn = -1
        for turn, cost_bytes in merge(*(tail.evictable() for tail in tails)):
            last_turn = turn
            size_bytes -= cost_bytes
            if size_bytes <= 0:
                break
        for tail in tails:
            tail.evict(last_turn)

    def _roll_largest(self) -> None:
        """Ask for the largest logs to be rolled, until half of what waits is asked for."""
        goal_bytes = self._memory.unrolled_bytes // 2
        logs = [partition for partition in self._logs() if partition.tail.unrolled_bytes]
        for partition in sorted(logs, key=_unrolled_bytes, reverse=True):
            if goal_bytes <= 0:
                break
            goal_bytes -= partition.tail.unrolled_bytes
            self.request(partition, "memory")

    # --- what ---------------------------------------------------------------------------------

    def request(self, partition: PartitionLog, reason: str) -> None:
        """Have a log rolled soon; asking twice is the same as asking once."""
        if partition not in self._requested:
            self._requested.add(partition)
            self._requests.put_nowait((partition, reason))

    async def roll(self, partition: PartitionLog, reason: str) -> None:
        """Roll a log until nothing waits any more that was waiting when this began."""
        end_offset = partition.high_watermark
        while partition.tail.rolled_offset < end_offset or not partition.is_saved:
            if not await self._writer.roll(partition, reason):
                break
        self._trimmer.consider()
        self.relieve()

    async def run(self) -> None:
        """Work for ever; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())
            group.create_task(self._trimmer.run())
            while True:
                self.tick()
                await asyncio.sleep(TICK_SECONDS)

    async def _work(self) -> None:
        while True:
            partition, reason = await self._requests.get()
            try:
                if reason == "bytes":
                    await self._roll_full(partition)
                elif reason == "state":
                    await self._writer.save(partition)
                else:
                    await self.roll(partition, reason)
            except Exception:
                # An edge: whatever one log meets must not keep the others from being rolled.
                log.exception("roll failed", topic=partition.topic, partition=partition.partition)
            finally:
                # Not before: while a log is being rolled there is every reason to ask for it again.
                self._requested.discard(partition)

    async def _roll_full(self, partition: PartitionLog) -> None:
        while partition.tail.unrolled_bytes >= partition.settings.segment_bytes:
            if not await self._writer.roll(partition, "bytes"):
                break
        self._trimmer.consider()


def _unrolled_bytes(partition: PartitionLog) -> int:
    return partition.tail.unrolled_bytes
