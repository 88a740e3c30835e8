"""The world around some engines: a store that fails, and what a metadata store knows of brokers.

Everything that outlives a broker is here: the objects, the epoch counter, who is registered, which
broker owns which partition, and where logs begin and end. A broker is an engine with its own
connection to the store, so that one can be cut off while others go on.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from random import Random

from kafscale.errors import FencedError, OperatingError
from kafscale.records import Codec, TimestampType
from kafscale.storage.engine import EngineSettings
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.recovery.log_opener import PartitionToOpen
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.wal.buffer.seal_policy import SealPolicy
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner
from kafscale.storage.wal.streams import Streams
from kafscale.testing.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.testing.virtual_time import clock_ms
from simulation.brokers import Broker
from simulation.model import NAMESPACE, BrokenPromiseError, Identity, PartitionModel

PUT = frozenset({"put"})
TRIES_ROUGH_MAX = 3
TRIES_MAX = 7

CALM: tuple[Rule, ...] = (Rule(fault=Fault.SLOW, seconds=(0.001, 0.05)),)
ROUGH = (
    Rule(fault=Fault.SLOW, seconds=(0.001, 0.3)),
    Rule(fault=Fault.SLOW_DOWN, share=0.04),
    Rule(fault=Fault.TIMED_OUT, share=0.03, seconds=(0.1, 2)),
    Rule(fault=Fault.RESPONSE_LOST, share=0.05, seconds=(0.1, 2)),
    Rule(fault=Fault.APPLIED_LATER, share=0.05, operations=PUT, seconds=(0.1, 5)),
    Rule(fault=Fault.SLOW, share=0.05, seconds=(0.5, 5)),
)
STORM = (
    Rule(fault=Fault.SLOW, seconds=(0.001, 1)),
    Rule(fault=Fault.REFUSED, share=0.15),
    Rule(fault=Fault.RESPONSE_LOST, share=0.15, seconds=(0.1, 2)),
    Rule(fault=Fault.APPLIED_LATER, share=0.15, operations=PUT, seconds=(0.1, 10)),
)


def random_settings(random: Random) -> EngineSettings:
    """Tiny bounds, so that all of them are met."""
    uploads_max = random.randint(1, 6)
    return EngineSettings(
        seal_policy=SealPolicy(
            flush_bytes=random.choice((200, 1000, 10_000)),
            flush_messages=random.choice((2, 10, 1000)),
            flush_interval_ms=random.choice((10, 500)),
            uploads_max=uploads_max,
            idle_uploads_max=random.randint(1, uploads_max),
        ),
        puts_per_second=random.choice((None, 2.0, 20.0)),
        puts_burst=random.randint(1, 5),
        buffer_bytes_max=random.choice((1500, 5000, 100_000)),
        limits=RollLimits(
            tail_bytes_max=random.choice((2000, 10_000, 1_000_000)),
            wal_bytes_max=random.choice((1000, 10_000, 1_000_000)),
            segment_age_ms_max=random.choice((1000, 10_000, 600_000)),
            borrowed_bytes_max=random.choice((0, 250, 5000)),
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


@dataclass(frozen=True)
class Assignment:
    """Whose a partition is."""

    broker: Broker
    broker_epoch: int
    leader_epoch: int
    fully_rolled: bool
    is_new: bool


@dataclass(frozen=True)
class State:
    """What is remembered of a log."""

    start_offset: int = 0
    end_offset: int = 0


Place = tuple[Identity, int]


class World:
    """All that outlives a broker."""

    def __init__(self, random: Random, objects: MemoryObjectStore | None = None) -> None:
        self.random = random
        self.objects = objects or MemoryObjectStore(clock_ms, yields=True)
        self.epoch = random.choice((-1, -1, 5))
        self.metadata_failing_share = 0.0
        self.settings = random_settings(random)
        self.topics: dict[str, Identity] = {}
        self.log_settings: dict[bytes, LogSettings] = {}
        self.registered: dict[int, Broker] = {}
        self.assignments: dict[tuple[bytes, int], Assignment] = {}
        self.states: dict[tuple[bytes, int], State] = {}
        self.weather: tuple[Rule, ...] = CALM
        self.stores: list[FaultyObjectStore] = []
        self._identities = 0
        self._is_generous = random.random() < 0.5
        """Whether what is deleted counts as if segments held it, where ends are remembered."""
        self._controller = self.connect()
        self._streams = Streams(self._controller, NAMESPACE, clock_ms)
        self._reaper = DeadStreamCleaner(self._controller, NAMESPACE, clock_ms)

    # --- topics -------------------------------------------------------------------------------

    def new_topic(self, name: str, partition_count: int) -> Identity:
        self._identities += 1
        identity = Identity(name, self._identities, partition_count)
        self.topics[name] = identity
        self.log_settings[identity.id] = random_log_settings(self.random)
        return identity

    def partitions(self) -> list[tuple[Identity, int, PartitionModel]]:
        return [
            (topic, number, model)
            for topic in self.topics.values()
            for number, model in enumerate(topic.partitions)
        ]

    # --- stores -------------------------------------------------------------------------------

    def connect(self) -> FaultyObjectStore:
        store = FaultyObjectStore(self.objects, self.weather, random=self.random)
        self.stores.append(store)
        return store

    def change_weather(self, weather: tuple[Rule, ...], metadata_failing_share: float) -> None:
        self.weather = weather
        self.metadata_failing_share = metadata_failing_share
        for store in self.stores:
            store.rules = [*weather]

    async def settle(self) -> None:
        """Wait until everything has landed that is on its way."""
        for store in self.stores:
            await store.wait_for_late_writes()

    async def insist(self, store: FaultyObjectStore, operation: Callable[[], Awaitable[object]]):
        """Do something that the store may make fail several times, but not for ever."""
        for tries in range(TRIES_MAX):
            if tries > TRIES_ROUGH_MAX:
                store.rules = [*CALM]
            try:
                await operation()
            except OperatingError:
                await asyncio.sleep(0.1)
                continue
            store.rules = [*self.weather]
            return
        raise BrokenPromiseError(f"it did not succeed in {TRIES_MAX} tries")

    # --- brokers ------------------------------------------------------------------------------

    def new_broker(self, broker_id: int) -> Broker:
        return Broker(self, broker_id, self.connect(), self.settings)

    async def register(self, broker: Broker) -> None:
        """Begin a life of a broker; another with its id is none of us any more."""
        await self.insist(broker.store, broker.begin)
        self.registered[broker.id] = broker

    def take_epoch(self, at_least: int) -> int:
        self.epoch = max(self.epoch + 1, at_least)
        return self.epoch

    def lives(self) -> list[Broker]:
        return list(self.registered.values())

    async def bury(self, broker: Broker, heirs: Sequence[Broker]) -> None:
        """Take a broker for dead, and give away what it had."""
        if self.registered.get(broker.id) is broker:
            del self.registered[broker.id]
        await self.bury_life(broker, broker.epoch, heirs)

    async def bury_life(self, broker: Broker, epoch: int, heirs: Sequence[Broker]) -> None:
        """End the stream of one life of a broker, and give away what it had."""
        await self.insist(self._controller, lambda: self._streams.fence(broker.id, epoch))
        orphans = [
            (topic, number)
            for topic, number, _ in self.partitions()
            if (found := self.assignments[topic.id, number]).broker is broker
            and found.broker_epoch == epoch
        ]
        await self.give(orphans, heirs, fully_rolled=False)

    # --- partitions ---------------------------------------------------------------------------

    def owner(self, topic: Identity, number: int) -> Broker:
        return self.assignments[topic.id, number].broker

    def is_owner(self, broker: Broker, topic: Identity, number: int) -> bool:
        found = self.assignments.get((topic.id, number))
        return found is not None and found.broker is broker and found.broker_epoch == broker.epoch

    def log(self, topic: Identity, number: int) -> PartitionLog:
        """The log as its owner serves it."""
        return self.owner(topic, number).engine.logs.find(topic.name, number)

    async def give(
        self,
        places: Sequence[Place],
        heirs: Sequence[Broker],
        *,
        fully_rolled: bool,
        is_new: bool = False,
    ) -> None:
        """Assign partitions to brokers, which open them."""
        by_heir: dict[Broker, list[Place]] = defaultdict(list)
        for topic, number in places:
            heir = self.random.choice(heirs)
            by_heir[heir].append((topic, number))
            before = self.assignments.get((topic.id, number))
            self.assignments[topic.id, number] = Assignment(
                heir, heir.epoch, before.leader_epoch + 1 if before else 0, fully_rolled, is_new
            )
        for heir, given in by_heir.items():
            to_open = [self._to_open(topic, number) for topic, number in given]
            await self.insist(heir.store, lambda: heir.engine.open(to_open))  # noqa: B023
            for topic, number in given:
                topic.partitions[number].check_opened(heir.engine.logs.find(topic.name, number))

    def _to_open(self, topic: Identity, number: int) -> PartitionToOpen:
        assignment = self.assignments[topic.id, number]
        state = self.states.get((topic.id, number), State())
        return PartitionToOpen(
            topic=topic.name,
            topic_id=topic.id,
            partition=number,
            settings=self.log_settings[topic.id],
            leader_epoch=assignment.leader_epoch,
            start_offset=state.start_offset,
            end_offset=state.end_offset,
            fully_rolled=assignment.fully_rolled,
            is_new=assignment.is_new,
        )

    def remember(self, broker: Broker, partition: PartitionLog) -> None:
        """What the metadata store takes from an owner, and from nobody else."""
        place = (partition.topic_id, partition.partition)
        found = self.assignments.get(place)
        life = (broker, broker.epoch, partition.leader_epoch)
        if found is None or (found.broker, found.broker_epoch, found.leader_epoch) != life:
            raise FencedError("the partition is somebody else's")
        end_offset = partition.tail.rolled_offset
        if self._is_generous:
            end_offset = max(end_offset, partition.start_offset)
        self.states[place] = State(partition.start_offset, end_offset)

    # --- streams of the dead ------------------------------------------------------------------

    async def reap(self) -> None:
        await self._reaper.clean(self._rolled_end, self._is_live)

    async def reap_in_the_end(self, later_ms: int) -> None:
        """Reap as if that much time had passed."""
        reaper = DeadStreamCleaner(self.objects, NAMESPACE, lambda: clock_ms() + later_ms)
        await reaper.clean(self._rolled_end, self._is_live)

    def _rolled_end(self, topic_id: bytes, number: int) -> int | None:
        if all(topic.id != topic_id for topic in self.topics.values()):
            return None
        return self.states.get((topic_id, number), State()).end_offset

    def _is_live(self, broker_id: int, epoch: int) -> bool:
        broker = self.registered.get(broker_id)
        return broker is not None and broker.epoch == epoch
