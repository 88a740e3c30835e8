"""The storage of one broker in one life: its parts put together, opened, kept going, and stopped.

A life begins with a new epoch: `open` brings back what segments and the WAL of earlier lives hold,
ends their streams, and only then lets anybody append. It ends with `stop`, which makes everything
durable and rolls what there is time for; or with a crash, after which the next life finds the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from kafscale.errors import KafscaleError, NotOwnerError, ObjectNotFoundError
from kafscale.observability.logging import get_logger
from kafscale.storage.blocks import Blocks
from kafscale.storage.buffer import PutBudget, SealRules
from kafscale.storage.flush import WalPosition, WalWriter
from kafscale.storage.log import PartitionLog
from kafscale.storage.logs import LogDirectory
from kafscale.storage.objects.base import ObjectStore
from kafscale.storage.opening import Opener, TopicToOpen
from kafscale.storage.reader import LogReader
from kafscale.storage.recovery import Recovery, list_streams
from kafscale.storage.retention import Retention
from kafscale.storage.roll import SegmentWriter
from kafscale.storage.statistics import Statistics
from kafscale.storage.tail import TailMemory
from kafscale.storage.trim import DurableObject, WalTrimmer
from kafscale.storage.upkeep import Bounds, Upkeep

log = get_logger(__name__)

OPENINGS_MAX = 32
"""How many partitions are looked into at once while a broker starts."""


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


class StorageEngine:
    """The logs of a broker and everything that works on them."""

    def __init__(
        self, store: ObjectStore, namespace: str, broker_id: int, settings: EngineSettings, *,
        save: Callable[[PartitionLog], Awaitable[None]], clock: Callable[[], int], random: Random,
    ) -> None:  # fmt: skip
        self._store = store
        self._namespace = namespace
        self._broker_id = broker_id
        self._settings = settings
        self._clock = clock
        self._random = random
        self.statistics = Statistics()
        self.memory = TailMemory()
        self.reader = LogReader(
            store,
            namespace,
            Blocks(store, settings.blocks_bytes_max, self.statistics),
            indexes_bytes_max=settings.indexes_bytes_max,
            read_ahead=settings.read_ahead,
            index_interval_bytes=settings.index_interval_bytes,
            statistics=self.statistics,
        )
        opener = Opener(store, namespace, self.reader, self.memory, asyncio.Semaphore(OPENINGS_MAX))
        self.logs = LogDirectory(store, namespace, opener, self.reader)
        self.trimmer = WalTrimmer(store, clock, random)
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
            writer, self.trimmer, self.memory, settings.bounds, logs=self._every_log, clock=clock
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
        self._wal: WalWriter | None = None

    @property
    def wal(self) -> WalWriter:
        assert self._wal is not None, "storage is not open yet"
        return self._wal

    async def newest_epoch(self) -> int:
        """The epoch of the last life that the store knows of, or -1."""
        return max(await list_streams(self._store, self._namespace, self._broker_id), default=-1)

    async def open(
        self, topics: Sequence[TopicToOpen], take_epoch: Callable[[int], Awaitable[int]]
    ) -> None:
        """Bring back all topics; `take_epoch` gives a new epoch that is at least its argument."""
        started_ms = self._clock()
        epoch = await take_epoch(await self.newest_epoch() + 1)
        recovery = Recovery(
            self._store,
            self._namespace,
            self._broker_id,
            epoch,
            find_log=self.logs.find_by_id,
            clock=self._clock,
        )
        await recovery.begin()
        durable = await self._bring_back(topics, recovery, started_ms)
        for found in durable:
            self.trimmer.add(found)
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
        self.logs.start(self._wal)
        log.info(
            "storage opened", epoch=epoch, partitions=sum(1 for _ in self.logs),
            recovered_bytes=recovery.recovered_bytes,
            duration=round((self._clock() - started_ms) / 1000, 3),
        )  # fmt: skip

    async def _bring_back(
        self, topics: Sequence[TopicToOpen], recovery: Recovery, started_ms: int
    ) -> list[DurableObject]:
        """Open all logs and give them what the WAL holds for them; return its objects.

        Streams are ended before segments are listed. A former owner that is still awake can then
        only make segments of what it has, and delete what these hold. If it does so while the WAL
        is read, the logs are opened again: what is missing there is in segments now.
        """
        while True:
            try:
                streams = await recovery.end_streams()
                await asyncio.gather(*(self.logs.open(topic, started_ms) for topic in topics))
                return await recovery.replay(streams)
            except ObjectNotFoundError as error:
                log.warning("wal changed while it was read", error=str(error))
                for topic in topics:
                    self.logs.close(topic.name)

    async def run(self) -> None:
        """Roll, trim and delete in the background; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.upkeep.run())
            group.create_task(self._retain())

    async def stop(self, *, flush_seconds: float, roll_seconds: float) -> None:
        """Make everything durable, and make segments of it as far as there is time."""
        if self.wal.fenced.done():
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
                        "retention failed", topic=partition.topic, partition=partition.partition,
                        error=str(error),
                    )  # fmt: skip

    def _every_log(self) -> list[PartitionLog]:
        return list(self.logs)
