"""`StorageEngine`: the storage of one broker, and the lifecycle of sessions and logs.

`start_session` starts a broker session under a new epoch, with a WAL stream of its own. `open`
opens logs from their segments and, if the former owner did not release them, from the WAL streams
of ended sessions. `release` and `remove` give them up. A session ends with `end_session` when
another broker has taken over, and the same process may start another; with `stop`, which makes
everything durable and rolls as much as time allows; or with a crash, which is like `end_session`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from kafscale.errors import NotOwnerError, OperatingError, StoreUnavailableError
from kafscale.observability.logging import get_logger
from kafscale.storage.compaction.scheduler import CompactionScheduler, CompactionSettings
from kafscale.storage.compaction.worker_process import Worker, WorkerProcess
from kafscale.storage.counters import StorageCounters
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.log.log_directory import LogDirectory
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.tail import TailMemory
from kafscale.storage.objects.layers.leased import LeasedObjectStore
from kafscale.storage.objects.store import ObjectStore
from kafscale.storage.read.block_cache import BlockCache
from kafscale.storage.read.log_reader import LogReader
from kafscale.storage.read.read_ahead import ReadAheadLimits
from kafscale.storage.recovery.log_opener import LogOpener
from kafscale.storage.recovery.segment_recovery import PartitionToOpen, SegmentRecovery
from kafscale.storage.segments.newest_timestamps import NewestTimestamps
from kafscale.storage.segments.retention import Retention
from kafscale.storage.segments.roll_scheduler import RollLimits, RollScheduler
from kafscale.storage.segments.segment_writer import RollReason, SegmentWriter
from kafscale.storage.segments.swap import Swapper
from kafscale.storage.wal.buffer import PutBudget, SealPolicy, StreamPosition
from kafscale.storage.wal.streams import Streams
from kafscale.storage.wal.trimmer import DurableObject, WalTrimmer
from kafscale.storage.wal.writer import WalWriter

logger = get_logger(__name__)

RELEASE_PAUSE_SECONDS = 1.0
"""How long a release may reject appends; longer, and it fails."""
RELEASE_REST_BYTES = 1 << 20
"""A rest of this size may be rolled while appends are rejected."""
RELEASE_ROLLS_MAX = 5
"""How often a release rolls while appends continue, if they are faster than the store."""


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Settings of the storage engine."""

    seal_policy: SealPolicy
    puts_per_second: float | None
    """None: no limit."""
    puts_burst: int
    buffer_bytes_max: int
    limits: RollLimits
    blocks_bytes_max: int
    indexes_bytes_max: int
    read_ahead: ReadAheadLimits
    index_interval_bytes: int
    retention_check_interval_ms: int
    producer_expiration_ms: int
    trim_count_max: int = 1
    """WAL objects deleted per request; 1 if the store does not delete in order."""
    compaction: CompactionSettings | None = None
    """None: compacted topics are left to the Spark job."""


class StorageEngine:
    """The logs of a broker, and the background work on them."""

    def __init__(
        self,
        store: ObjectStore,
        namespace: str,
        broker_id: int,
        settings: EngineSettings,
        *,
        save_state: Callable[[PartitionLog], Awaitable[None]],
        clock: Callable[[], int],
        random: Random,
        is_lease_valid: Callable[[], bool] = lambda: True,
        open_worker: Callable[[], Worker] = WorkerProcess,
    ) -> None:
        """Segments are written, and objects deleted, only while `is_lease_valid`."""
        self._store = store
        leased = self._leased_store = LeasedObjectStore(store, is_lease_valid)
        self._namespace = namespace
        self._broker_id = broker_id
        self._settings = settings
        self._clock = clock
        self._random = random
        self.counters = StorageCounters()
        self.memory = TailMemory()
        blocks = BlockCache(store, settings.blocks_bytes_max)
        self.reader = LogReader(
            leased,
            namespace,
            blocks,
            indexes_bytes_max=settings.indexes_bytes_max,
            read_ahead=settings.read_ahead,
            index_interval_bytes=settings.index_interval_bytes,
            counters=self.counters,
        )
        segment_recovery = SegmentRecovery(store, namespace, self.reader, self.memory)
        self._streams = Streams(store, namespace, clock)
        self._log_opener = LogOpener(store, namespace, self._streams, segment_recovery, clock)
        self.logs = LogDirectory()
        self.trimmer = WalTrimmer(leased, random, settings.trim_count_max)
        self.roll_scheduler = self._new_roll_scheduler(save_state, blocks)
        newest_timestamps = NewestTimestamps(leased, namespace, self.reader)
        self.retention = Retention(
            leased,
            namespace,
            newest_timestamps,
            self.roll_scheduler,
            save_state=save_state,
            producer_expiration_ms=settings.producer_expiration_ms,
            clock=clock,
        )
        self._swapper = Swapper(
            leased,
            namespace,
            self.reader,
            index_interval_bytes=settings.index_interval_bytes,
            save_state=save_state,
            random=random,
        )
        self.swap_segments = self._swapper.swap_staged
        """Replaces segments of a log by those that a job has staged."""
        self.compaction = self._new_compaction(open_worker, newest_timestamps)
        self._wal: WalWriter | None = None

    def _new_roll_scheduler(
        self, save_state: Callable[[PartitionLog], Awaitable[None]], blocks: BlockCache
    ) -> RollScheduler:
        writer = SegmentWriter(
            self._leased_store,
            self._namespace,
            index_interval_bytes=self._settings.index_interval_bytes,
            save_state=save_state,
            keep_index=self.reader.keep_index,
            clock=self._clock,
            counters=self.counters,
        )
        return RollScheduler(
            writer,
            self.trimmer,
            self.memory,
            self._settings.limits,
            logs=self._all_logs,
            clock=self._clock,
            borrow=blocks.reserve,
            seal_marker=self._seal_marker,
            random=self._random,
        )

    def _new_compaction(
        self, open_worker: Callable[[], Worker], newest_timestamps: NewestTimestamps
    ) -> CompactionScheduler | None:
        if self._settings.compaction is None:
            return None
        return CompactionScheduler(
            self._leased_store,
            self._namespace,
            open_worker(),
            newest_timestamps,
            self._settings.compaction,
            index_interval_bytes=self._settings.index_interval_bytes,
            logs=self._all_logs,
            swap=self._swapper.swap,
            aborted=self.reader.aborted_transactions,
            clock=self._clock,
            counters=self.counters,
            random=self._random,
        )

    @property
    def wal(self) -> WalWriter:
        """The WAL writer of the current session, or of the last one."""
        assert self._wal is not None, "no session has started"
        return self._wal

    def backpressure(self) -> "asyncio.Future[None] | None":
        """A future that producers should wait for before they send more; None if not needed."""
        return self.wal.backpressure()

    # --- sessions -------------------------------------------------------------------------------

    async def newest_epoch(self) -> int:
        """The epoch of this broker's newest stream in the store, or -1."""
        return await self._streams.newest_epoch(self._broker_id)

    async def start_session(self, epoch: int) -> None:
        """Start a broker session: create its WAL stream and fence those of earlier sessions.

        An epoch can be used once: after a failure, use a new one.
        """
        self.end_session()
        opening_key = await self._streams.create(self._broker_id, epoch)
        await self._streams.fence_earlier(self._broker_id, epoch)
        self.trimmer.add(DurableObject(opening_key, 0, wal_object.EMPTY_BYTES, {}))
        self._wal = WalWriter(
            self._store,
            StreamPosition(self._namespace, self._broker_id, epoch),
            seal_policy=self._settings.seal_policy,
            budget=PutBudget(self._settings.puts_per_second, self._settings.puts_burst),
            buffer_bytes_max=self._settings.buffer_bytes_max,
            on_object_durable=self.roll_scheduler.add_durable_object,
            clock=self._clock,
            random=self._random,
            counters=self.counters,
            deletable_to=self.trimmer.deletable_to,
            is_memory_full=self.roll_scheduler.is_memory_full,
        )
        logger.info("storage session began", epoch=epoch)

    def end_session(self) -> None:
        """End the session immediately: other brokers own its logs and may fence its stream."""
        if self._wal is not None:
            self._wal.abort()
        for log in self.logs:
            self._close(log)
        self.trimmer.clear()

    # --- logs ---------------------------------------------------------------------------------

    async def open(
        self,
        partitions: Sequence[PartitionToOpen],
        *,
        is_wanted: Callable[[PartitionLog], bool] = lambda _: True,
    ) -> list[PartitionLog]:
        """Open logs and serve them, or none if the store fails; return those that are served.

        `is_wanted`: whether a log is still to be served. Meanwhile one of its name may have been.
        """
        wal = self.wal
        started_ms = self._clock()
        self.reader.forget_partitions((one.directory, one.partition) for one in partitions)
        opened = await self._log_opener.open(partitions)
        await asyncio.sleep(0)  # What follows is a turn of its own: about 4 ms for 1,000 logs.
        if wal.is_closed:
            opened.close()
            raise NotOwnerError("the broker session ended while logs were opened")
        served = []
        for log in opened.logs:
            if not is_wanted(log):
                log.close()
                continue
            served.append(log)
            log.become_leader(wal)
            self.logs.add(log)
            if log.tail.unrolled_bytes:
                # Until segments hold these records, every takeover reads them from the WAL again.
                self.roll_scheduler.schedule_roll(log, RollReason.TAKEOVER)
        logger.info(
            "logs opened",
            partitions=len(served),
            recovered_bytes=opened.recovered_bytes,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )
        return served

    async def release(self, log: PartitionLog) -> None:
        """Roll everything and stop appends, so that another broker can open the log.

        Reads continue. Appends continue while most of the log is rolled, however long that takes,
        and are rejected for a moment at the end. On failure or cancellation, or if that takes too
        long, they are accepted again.
        """
        for _ in range(RELEASE_ROLLS_MAX):
            await self.roll_scheduler.roll(log, RollReason.RELEASE)
            if log.tail.unrolled_bytes <= RELEASE_REST_BYTES:
                break
        async with log.segments_lock:
            log.pause_appends()
            try:
                async with asyncio.timeout(RELEASE_PAUSE_SECONDS):
                    await self.wal.flush()
                    await self.roll_scheduler.roll(log, RollReason.RELEASE)
                _check_rolled(log)
            except TimeoutError as error:
                log.resume_appends()
                raise StoreUnavailableError(
                    f"{log.topic}/{log.partition} could not be rolled within"
                    f" {RELEASE_PAUSE_SECONDS} s; try again"
                ) from error
            except BaseException:
                log.resume_appends()
                raise

    def remove(self, log: PartitionLog) -> None:
        """Stop serving a log."""
        self._close(log)
        self.reader.forget_partitions([(log.directory, log.partition)])

    def close_topic(self, topic_id: bytes, topic: str, directory: str) -> None:
        """Stop serving a deleted topic, and keep nothing of it in memory and in the WAL."""
        for log in self.logs.of_topic(topic):
            if log.topic_id == topic_id:
                self._close(log)
        if self._wal is not None:
            # Logs that were closed before, for another reason, may still have records there.
            self.trimmer.drop_topic(topic_id, self._wal.next_sequence)
        self.reader.forget(object_keys.topic_prefix(self._namespace, directory))

    async def has_objects(self, directory: str) -> bool:
        """Whether there are objects under the keys of a topic."""
        prefix = object_keys.topic_prefix(self._namespace, directory)
        async for chunk in self._leased_store.list(prefix):
            if chunk:
                return True
        return False

    async def delete_objects(self, directory: str) -> int:
        """Delete every object of a deleted topic; return the number of objects."""
        prefix = object_keys.topic_prefix(self._namespace, directory)
        count = 0
        async for chunk in self._leased_store.list(prefix):
            await self._leased_store.delete([item.key for item in chunk])
            count += len(chunk)
        if count:
            logger.info("topic objects deleted", prefix=prefix, count=count)
        return count

    def _seal_marker(self) -> None:
        self.wal.seal_marker()

    def _close(self, log: PartitionLog) -> None:
        self.logs.discard(log)
        log.close()

    # --- background work ------------------------------------------------------------------------

    async def run(self) -> None:
        """Roll, trim, compact and apply retention in the background, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.roll_scheduler.run())
            group.create_task(
                self.retention.run(
                    self._all_logs, interval_ms=self._settings.retention_check_interval_ms
                )
            )
            if self.compaction is not None:
                group.create_task(self.compaction.run())

    async def stop(self, *, flush_seconds: float, roll_seconds: float) -> None:
        """Make everything durable, and roll as much as time allows."""
        if self._wal is None or self._wal.is_closed:
            self.close()  # Other brokers own the logs now.
            return
        try:
            async with asyncio.timeout(flush_seconds):
                await self.wal.flush()
        except (TimeoutError, NotOwnerError):
            # No producer with acks=all has received an acknowledgement for these records.
            logger.exception(
                "records lost before they were durable", bytes=self.wal.unflushed_bytes
            )
            self.close()
            return
        with suppress(TimeoutError, NotOwnerError):  # Others may take over meanwhile.
            async with asyncio.timeout(roll_seconds):
                for log in self._all_logs():
                    try:
                        await self.roll_scheduler.roll(log, RollReason.EXPLICIT)
                    except OperatingError as error:
                        # The WAL keeps its records.
                        logger.warning("log not rolled", log=repr(log), error=str(error))
                await self.trim()
        self.close()

    async def trim(self) -> None:
        """Delete the WAL objects that no log needs."""
        if self.trimmer.needs_marker:
            self.wal.seal_marker()
            await self.wal.flush()
        await self.trimmer.trim()

    def close(self) -> None:
        """Stop immediately, as in a crash."""
        if self._wal is not None:
            self._wal.abort()
        self._swapper.close()
        self.reader.close()

    def _all_logs(self) -> list[PartitionLog]:
        return list(self.logs)


def _check_rolled(log: PartitionLog) -> None:
    log.check_open()
    if log.tail.rolled_offset < log.end_offset or not log.is_saved:
        raise NotOwnerError(f"{log.topic}/{log.partition} is not fully rolled")
