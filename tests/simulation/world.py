"""The world around an engine: a store that fails, a metadata store, and the lives of a broker.

Everything that outlives a broker is here: the objects, the epoch counter and the log starts that
the metadata store remembers. A life is an engine with its own connection to the store, so that one
can be cut off while another goes on.
"""

import asyncio
from contextlib import suppress
from random import Random

from kafscale.errors import NotOwnerError, OperatingError, StoreUnavailableError
from kafscale.records import Codec, TimestampType
from kafscale.storage.buffer import SealRules
from kafscale.storage.engine import EngineSettings, StorageEngine
from kafscale.storage.log import PartitionLog
from kafscale.storage.objects.faulty import Fault, FaultyObjectStore, Rule
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.opening import TopicToOpen
from kafscale.storage.settings import LogSettings
from kafscale.storage.upkeep import Bounds
from kafscale.testing.virtual_time import clock_ms
from simulation.model import BrokenPromiseError, Identity, PartitionModel

NAMESPACE = "simulated"
BROKER_ID = 1
PUT = frozenset({"put"})
OPEN_TRIES_ROUGH_MAX = 2
OPEN_TRIES_MAX = 6

CALM: tuple[Rule, ...] = (Rule(fault=Fault.SLOW, seconds=(0.001, 0.05)),)
ROUGH = (
    Rule(fault=Fault.SLOW, seconds=(0.001, 0.3)),
    Rule(fault=Fault.SLOW_DOWN, share=0.04),
    Rule(fault=Fault.TIMED_OUT, share=0.03, seconds=(0.1, 2)),
    Rule(fault=Fault.ANSWER_LOST, share=0.05, seconds=(0.1, 2)),
    Rule(fault=Fault.LANDS_LATER, share=0.05, operations=PUT, seconds=(0.1, 5)),
    Rule(fault=Fault.SLOW, share=0.05, seconds=(0.5, 5)),
)
STORM = (
    Rule(fault=Fault.SLOW, seconds=(0.001, 1)),
    Rule(fault=Fault.REFUSED, share=0.15),
    Rule(fault=Fault.ANSWER_LOST, share=0.15, seconds=(0.1, 2)),
    Rule(fault=Fault.LANDS_LATER, share=0.15, operations=PUT, seconds=(0.1, 10)),
)


def random_settings(random: Random) -> EngineSettings:
    """Tiny bounds, so that all of them are met."""
    uploads_max = random.randint(1, 6)
    return EngineSettings(
        rules=SealRules(
            flush_bytes=random.choice((200, 1000, 10_000)),
            flush_messages=random.choice((2, 10, 1000)),
            flush_interval_ms=random.choice((10, 500)),
            uploads_max=uploads_max,
            idle_uploads_max=random.randint(1, uploads_max),
        ),
        puts_per_second=random.choice((None, 2.0, 20.0)),
        puts_burst=random.randint(1, 5),
        buffer_bytes_max=random.choice((1500, 5000, 100_000)),
        bounds=Bounds(
            tail_bytes_max=random.choice((2000, 10_000, 1_000_000)),
            wal_bytes_max=random.choice((1000, 10_000, 1_000_000)),
            segment_age_ms_max=random.choice((1000, 10_000, 600_000)),
        ),
        blocks_bytes_max=random.choice((500, 1_000_000)),
        indexes_bytes_max=random.choice((1, 1_000_000)),
        read_ahead=random.randint(0, 3),
        index_interval_bytes=random.choice((1, 200, 4096)),
        retention_check_interval_ms=3000,
        producer_expiration_ms=7 * 24 * 3600 * 1000,
    )


def random_log_settings(random: Random) -> LogSettings:
    return LogSettings(
        segment_bytes=random.choice((150, 600, 3000, 1_000_000)),
        segment_ms=random.choice((1000, 30_000, 10**9)),
        retention_ms=random.choice((-1, -1, 5000, 20_000)),
        retention_bytes=random.choice((-1, -1, -1, 800, 3000)),
        message_bytes_max=1_000_000,
        timestamp_type=random.choice(tuple(TimestampType)),
        compression=random.choice((None, None, Codec.LZ4)),
    )


class Life:
    """One engine, from its opening to its end."""

    def __init__(self, world: "World", store: FaultyObjectStore, settings: EngineSettings) -> None:
        self.store = store
        self.epoch = -1
        self.ended = asyncio.Event()
        self._world = world
        self._background: asyncio.Task[None] | None = None
        self.engine = StorageEngine(
            store, NAMESPACE, BROKER_ID, settings, save=self._save, clock=clock_ms,
            random=Random(world.random.getrandbits(32)),
        )  # fmt: skip

    @property
    def is_current(self) -> bool:
        return self.epoch == self._world.epoch

    async def open(self) -> None:
        # From here on the metadata store takes nothing from earlier lives.
        await self._take_epoch(0)
        await self.engine.open(self._world.topics_to_open(), self._take_epoch)
        self._background = asyncio.create_task(self.engine.run())

    async def crash(self) -> None:
        """End at once: what is on its way may have arrived, or may not."""
        self.ended.set()
        self.engine.close()
        await self._end_background()

    async def stop(self) -> None:
        """End in good order."""
        await self._end_background()
        await self.engine.stop(flush_seconds=30, roll_seconds=30)
        self.ended.set()

    async def _end_background(self) -> None:
        if self._background is not None:
            if self._background.done():
                self._background.result()
                raise BrokenPromiseError("the engine's work has ended by itself")
            self._background.cancel()
            with suppress(asyncio.CancelledError):
                await self._background

    async def _take_epoch(self, at_least: int) -> int:
        if self.epoch < max(at_least, 0):
            self._world.epoch = self.epoch = max(self._world.epoch + 1, at_least)
        return self.epoch

    async def _save(self, partition: PartitionLog) -> None:
        world = self._world
        await asyncio.sleep(world.random.choice((0, 0.01)))
        if self.epoch < world.epoch:
            raise NotOwnerError("another life has begun")
        if world.random.random() < world.metadata_failing_share:
            raise StoreUnavailableError("the metadata store does not answer, on purpose")
        world.start_offsets[partition.topic_id, partition.partition] = partition.start_offset


class World:
    """All that outlives a broker."""

    def __init__(self, random: Random, objects: MemoryObjectStore | None = None) -> None:
        self.random = random
        self.objects = objects or MemoryObjectStore(clock_ms, yields=True)
        self.epoch = random.choice((-1, -1, 5))
        self.start_offsets: dict[tuple[bytes, int], int] = {}
        self.metadata_failing_share = 0.0
        self.topics: dict[str, Identity] = {}
        self.log_settings: dict[bytes, LogSettings] = {}
        self.settings = random_settings(random)
        self.weather: tuple[Rule, ...] = CALM
        self.stores: list[FaultyObjectStore] = []
        self._identities = 0

    def new_topic(self, name: str, partition_count: int) -> Identity:
        self._identities += 1
        identity = Identity(name, self._identities, partition_count)
        self.topics[name] = identity
        self.log_settings[identity.id] = random_log_settings(self.random)
        return identity

    def to_open(self, topic: Identity) -> TopicToOpen:
        return TopicToOpen(
            name=topic.name,
            id=topic.id,
            partition_count=len(topic.partitions),
            settings=self.log_settings[topic.id],
            leader_epoch=max(self.epoch, 0),
            start_offsets={
                number: self.start_offsets[topic.id, number]
                for number in range(len(topic.partitions))
                if (topic.id, number) in self.start_offsets
            },
        )

    def topics_to_open(self) -> list[TopicToOpen]:
        return [self.to_open(topic) for topic in self.topics.values()]

    def connect(self) -> FaultyObjectStore:
        store = FaultyObjectStore(self.objects, self.weather, random=self.random)
        self.stores.append(store)
        return store

    def change_weather(self, weather: tuple[Rule, ...], metadata_failing_share: float) -> None:
        self.weather = weather
        self.metadata_failing_share = metadata_failing_share
        for store in self.stores:
            store.rules = [*weather]

    async def begin_life(self) -> Life:
        """A life that has opened; the store may make it try several times, but not for ever."""
        for tries in range(OPEN_TRIES_MAX):
            life = Life(self, self.connect(), self.settings)
            if tries > OPEN_TRIES_ROUGH_MAX:
                life.store.rules = [*CALM]
            try:
                await life.open()
            except OperatingError:
                life.engine.close()
                await asyncio.sleep(0.1)
                continue
            life.store.rules = [*self.weather]
            self._check_opened(life)
            return life
        raise BrokenPromiseError(f"the engine did not open in {OPEN_TRIES_MAX} tries")

    def _check_opened(self, life: Life) -> None:
        for topic in self.topics.values():
            for number, model in enumerate(topic.partitions):
                model.check_opened(life.engine.logs.find(topic.name, number))

    async def settle(self) -> None:
        """Wait until everything has landed that is on its way."""
        for store in self.stores:
            await store.settle()

    def partitions(self) -> list[tuple[Identity, int, PartitionModel]]:
        return [
            (topic, number, model)
            for topic in self.topics.values()
            for number, model in enumerate(topic.partitions)
        ]
