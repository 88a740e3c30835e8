"""The storage of one broker: its parts put together, and how logs and lives come and go.

A life begins with a new epoch, under which this broker writes a WAL stream of its own. Logs come
into it one by one, each from what segments and, if its last owner did not release it, the streams
of the dead hold; and go again, released in good order or not. A life ends with `end`, when somebody
else has taken over, and another may begin in the same process; or with `stop`, which makes
everything durable and rolls what there is time for; or with a crash, which is like `end`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from kafscale.errors import KafscaleError, NotOwnerError
from kafscale.observability.logging import get_logger
from kafscale.storage.counters import Statistics
from kafscale.storage.formats import wal_object
from kafscale.storage.log.log_directory import LogDirectory
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.block_cache import Blocks
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.recovery.log_opener import Opener, PartitionToOpen
from kafscale.storage.recovery.takeover import Takeover
from kafscale.storage.segments.retention import Retention
from kafscale.storage.segments.roll_scheduler import Bounds, Upkeep
from kafscale.storage.segments.segment_writer import SegmentWriter
from kafscale.storage.segments.swap import Swapper, SwapResult
from kafscale.storage.wal.buffer.open_object import PutBudget, SealRules
from kafscale.storage.wal.streams import Streams
from kafscale.storage.wal.trimmer import DurableObject, WalTrimmer
from kafscale.storage.wal.writer import WalPosition, WalWriter

log = get_logger(__name__)

OPENINGS_MAX = 32
"""How many partitions are looked into at once."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Everything that can be set about storage."""

    rules: SealRules
    puts_per_second: float | None
    """None is as many as the store takes."""
    puts_burst: int
    buffer_bytes_max: int
    bounds: Bounds
    blocks_bytes_max: int
    indexes_bytes_max: int
    read_ahead: int
    index_interval_bytes: int
    retention_check_interval_ms: int
    producer_expiration_ms: int
    trim_count_max: int = 1
    """How many WAL objects are deleted with one call: one, if the store promises no order."""


class StorageEngine:
    """The logs of a broker and everything that works on them."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        broker_id: int,
        settings: EngineSettings,
        *,
        save: Callable[[PartitionLog], Awaitable[None]],
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._broker_id = broker_id
        self._settings = settings
        self._clock = clock
        self._random = random
        self.statistics = Statistics()
        self.memory = TailMemory()
        blocks = Blocks(store, settings.blocks_bytes_max, self.statistics)
        self.reader = LogReader(
            store,
            namespace,
            blocks,
            indexes_bytes_max=settings.indexes_bytes_max,
            read_ahead=settings.read_ahead,
            index_interval_bytes=settings.index_interval_bytes,
            statistics=self.statistics,
        )
        opener = Opener(store, namespace, self.reader, self.memory, asyncio.Semaphore(OPENINGS_MAX))
        self._streams = Streams(store, namespace, clock)
        self._takeover = Takeover(store, namespace, self._streams, opener, clock)
        self.logs = LogDirectory(store, namespace, self.reader)
        self.trimmer = WalTrimmer(store, clock, random, settings.trim_count_max)
        writer = SegmentWriter(
            store,
            namespace,
            index_interval_bytes=settings.index_interval_bytes,
            save=save,
            clock=clock,
            random=random,
            statistics=self.statistics,
        )
        self.upkeep = Upkeep(
            writer,
            self.trimmer,
            self.memory,
            settings.bounds,
            logs=self._every_log,
            clock=clock,
            borrow=blocks.lend,
        )
        self.retention = Retention(
            store,
            namespace,
            self.reader,
            self.upkeep,
            save=save,
            clock=clock,
            statistics=self.statistics,
        )
        self._swapper = Swapper(
            store,
            namespace,
            self.reader,
            index_interval_bytes=settings.index_interval_bytes,
            save=save,
            random=random,
        )
        self._wal: WalWriter | None = None

    @property
    def wal(self) -> WalWriter:
        """The WAL of the present life, or of the last one."""
        assert self._wal is not None, "no life has begun yet"
        return self._wal

    def congestion(self) -> "asyncio.Future[None] | None":
        """What producers should wait for before they send more, if anything."""
        return self.wal.congestion()

    # --- lives --------------------------------------------------------------------------------

    async def newest_epoch(self) -> int:
        """The epoch of the last life that the store knows of, or -1."""
        return await self._streams.newest_epoch(self._broker_id)

    async def begin(self, epoch: int) -> None:
        """Begin a life: open a stream under a new epoch, and end those of earlier lives.

        An epoch is for one try: after a failure, take another.
        """
        self.end()
        opening_key = await self._streams.begin(self._broker_id, epoch)
        await self._streams.end_earlier(self._broker_id, epoch)
        self.trimmer.add(DurableObject(opening_key, wal_object.EMPTY_BYTES, {}))
        self._wal = WalWriter(
            self._store,
            WalPosition(self._namespace, self._broker_id, epoch),
            rules=self._settings.rules,
            budget=PutBudget(self._settings.puts_per_second, self._settings.puts_burst),
            buffer_bytes_max=self._settings.buffer_bytes_max,
            on_durable=self.upkeep.on_durable,
            clock=self._clock,
            random=self._random,
            statistics=self.statistics,
            is_full=self.upkeep.is_full,
        )
        log.info("storage life began", epoch=epoch)

    def end(self) -> None:
        """End the life at once: all logs are somebody else's now, and so is our stream."""
        if self._wal is not None:
            self._wal.abandon()
        for served in self.logs:
            self._close(served)
        self.trimmer.clear()

    # --- logs ---------------------------------------------------------------------------------

    async def open(self, partitions: Sequence[PartitionToOpen]) -> list[PartitionLog]:
        """Open logs and serve them: all of them, or, where the store fails, none."""
        life = self.wal
        started_ms = self._clock()
        self.reader.forget_partitions((one.topic, one.partition) for one in partitions)
        taken = await self._takeover.take(partitions)
        if life.is_over:
            taken.close()
            raise NotOwnerError("this broker's life ended while logs were opened")
        for served in taken.logs:
            served.lead(life)
            self.logs.add(served)
            if served.tail.unrolled_bytes:
                # What the dead have left is read by all who take over, until segments hold it.
                self.upkeep.request(served, "takeover")
        log.info(
            "logs opened",
            partitions=len(taken.logs),
            recovered_bytes=taken.recovered_bytes,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )
        return taken.logs

    async def release(self, served: PartitionLog) -> None:
        """Stop taking appends, and make segments of everything, for another owner to open.

        Readers go on. If it fails, or is cancelled, appends are taken again.
        """
        served.hold()
        try:
            async with served.pruning:
                await self.wal.flush()
                await self.upkeep.roll(served, "release")
                _check_rolled(served)
        except BaseException:
            served.take_again()
            raise

    async def swap_segments(self, served: PartitionLog, staged_prefix: str) -> SwapResult:
        """Put segments that a job has staged in the place of those that it made them from."""
        return await self._swapper.swap(served, staged_prefix)

    def remove(self, served: PartitionLog) -> None:
        """Serve a log no longer."""
        self._close(served)
        self.reader.forget_partitions([(served.topic, served.partition)])

    def _close(self, served: PartitionLog) -> None:
        self.logs.discard(served)
        served.close()

    # --- work ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Roll, trim and delete in the background; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.upkeep.run())
            group.create_task(self._retain())

    async def stop(self, *, flush_seconds: float, roll_seconds: float) -> None:
        """Make everything durable, and make segments of it as far as there is time."""
        if self._wal is None or self._wal.is_over:
            self.close()  # Another broker looks after all of it now.
            return
        try:
            async with asyncio.timeout(flush_seconds):
                await self.wal.flush()
        except (TimeoutError, NotOwnerError):
            # None of it was acknowledged to a producer that asked for more than an append.
            log.exception("records lost that were not durable", bytes=self.wal.unflushed_bytes)
            self.close()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(roll_seconds):
                for partition in self._every_log():
                    await self.upkeep.roll(partition, "explicit")
                await self.trimmer.trim()
        self.close()

    def close(self) -> None:
        """Let go of everything at once, as a crash would."""
        if self._wal is not None:
            self._wal.abandon()
        self._swapper.close()
        self.reader.close()

    async def _retain(self) -> None:
        while True:
            await asyncio.sleep(self._settings.retention_check_interval_ms / 1000)
            for partition in self._every_log():
                partition.producers.expire(self._clock(), self._settings.producer_expiration_ms)
                try:
                    await self.retention.enforce(partition)
                except KafscaleError as error:
                    log.warning(
                        "retention failed",
                        topic=partition.topic,
                        partition=partition.partition,
                        error=str(error),
                    )

    def _every_log(self) -> list[PartitionLog]:
        return list(self.logs)


def _check_rolled(served: PartitionLog) -> None:
    served.check_open()
    if served.tail.rolled_offset < served.end_offset or not served.is_saved:
        raise NotOwnerError(f"{served.topic}/{served.partition} could not be rolled")
