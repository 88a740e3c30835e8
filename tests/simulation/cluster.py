"""The environment of simulated engines: a faulty object store, and the metadata of brokers.

It has everything that outlives a broker: the objects, the epoch counter, the registered brokers,
the assignments, and the offsets of logs. A broker is an engine with its own connection to the
store, so that one can be disconnected while others continue.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from random import Random

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from doubles.virtual_time import clock_ms
from kafscale.errors import NotOwnerError, OperatingError
from kafscale.metadata.schema.model import Assignment, PartitionState
from kafscale.records import Codec, TimestampType
from kafscale.storage.engine import EngineSettings
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.read.read_ahead import ReadAheadLimits
from kafscale.storage.recovery.segment_recovery import PartitionToOpen
from kafscale.storage.segments.roll_scheduler import RollLimits
from kafscale.storage.topic_catalog import CatalogTopic, CatalogWriter
from kafscale.storage.wal.buffer import SealPolicy
from kafscale.storage.wal.dead_stream_cleaner import DeadStreamCleaner, RolledEnds, Session
from kafscale.storage.wal.streams import Streams
from simulation.brokers import Broker
from simulation.features import ENABLED, Feature
from simulation.metadata import SimulatedMetadata
from simulation.model import NAMESPACE, InvariantViolationError, PartitionModel, SimulatedTopic

WRITES = frozenset({"put", "delete"})
HOURS = 3 * 3600
TRIES_WITH_FAULTS_MAX = 3
TRIES_MAX = 7

NO_FAULTS: tuple[Rule, ...] = (Rule(fault=Fault.SLOW, seconds=(0.001, 0.05)),)
SOME_FAULTS = (
    Rule(fault=Fault.SLOW, seconds=(0.001, 0.3)),
    Rule(fault=Fault.SLOW_DOWN, share=0.04),
    Rule(fault=Fault.TIMED_OUT, share=0.03, seconds=(0.1, 2)),
    Rule(fault=Fault.RESPONSE_LOST, share=0.05, seconds=(0.1, 2)),
    Rule(fault=Fault.APPLIED_LATER, share=0.03, operations=WRITES, seconds=(0.1, 5)),
    Rule(fault=Fault.APPLIED_LATER, share=0.03, operations=WRITES, seconds=(1, 100)),
    Rule(fault=Fault.APPLIED_LATER, share=0.02, operations=WRITES, seconds=(60, HOURS)),
    Rule(fault=Fault.SLOW, share=0.05, seconds=(0.5, 5)),
)
MANY_FAULTS = (
    Rule(fault=Fault.SLOW, seconds=(0.001, 1)),
    Rule(fault=Fault.REFUSED, share=0.15),
    Rule(fault=Fault.RESPONSE_LOST, share=0.15, seconds=(0.1, 2)),
    Rule(fault=Fault.APPLIED_LATER, share=0.1, operations=WRITES, seconds=(0.1, 10)),
    Rule(fault=Fault.APPLIED_LATER, share=0.05, operations=WRITES, seconds=(1, HOURS)),
)


def random_settings(random: Random) -> EngineSettings:
    """Tiny limits, so that all of them are reached."""
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
        read_ahead=ReadAheadLimits(random.randint(0, 3), random.choice((1, 10_000_000))),
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
class Owner:
    """The broker that owns a partition, and the assignment that says so."""

    broker: Broker
    assignment: Assignment
    is_new: bool
    lost_session: tuple[int, int] | None = None
    """The broker and epoch that owned it before, if that session has ended without a release."""


Partition = tuple[SimulatedTopic, int]


class SimulatedCluster:
    """Everything that outlives a broker."""

    def __init__(
        self,
        random: Random,
        objects: MemoryObjectStore | None = None,
        features: AbstractSet[Feature] = ENABLED,
    ) -> None:
        self.random = random
        self.features = features
        self.objects = objects or MemoryObjectStore(clock_ms, yields=True)
        self.metadata = SimulatedMetadata(random)
        self.epoch = random.choice((-1, -1, 5))
        self.settings = random_settings(random)
        self.topics: dict[str, SimulatedTopic] = {}
        self.log_settings: dict[bytes, LogSettings] = {}
        self.registered: dict[int, Broker] = {}
        self.owners: dict[tuple[bytes, int], Owner] = {}
        self.faults: tuple[Rule, ...] = NO_FAULTS
        self.stores: list[FaultyObjectStore] = []
        self.clock_ahead_ms = 0
        """How far a wall clock was ahead at most."""
        self.has_damage = False
        """Whether an object was damaged on purpose."""
        self.damaged_keys: set[str] = set()
        """Those objects, and indexes that were damaged."""
        self._topic_count = 0
        self._deleted_ids: list[bytes] = []
        self.controller_offset_ms = 0
        """How far the wall clock of the controller is ahead."""
        self._controller = self.connect()
        self._streams = Streams(self._controller, NAMESPACE, self._controller_ms)
        self._cleaner = DeadStreamCleaner(self._controller, NAMESPACE, self._controller_ms)
        self._catalog = CatalogWriter(self.objects, NAMESPACE)

    def _controller_ms(self) -> int:
        return clock_ms() + self.controller_offset_ms

    # --- topics -------------------------------------------------------------------------------

    async def new_topic(self, name: str, partition_count: int) -> SimulatedTopic:
        self._topic_count += 1
        topic = SimulatedTopic(
            name, self._topic_count, partition_count, is_reused=name in self.topics
        )
        if name in self.topics:
            self._deleted_ids.append(self.topics[name].id)
        self.topics[name] = topic
        self.log_settings[topic.id] = random_log_settings(self.random)
        await self.metadata.add_topic(topic)
        await self._catalog.write(
            [
                CatalogTopic(
                    each.name,
                    each.id.hex(),
                    len(each.partitions),
                    id_in_keys=each.directory != each.name,
                )
                for each in self.topics.values()
            ],
            deleted_ids=self._deleted_ids,
        )
        return topic

    def partitions(self) -> list[tuple[SimulatedTopic, int, PartitionModel]]:
        return [
            (topic, number, model)
            for topic in self.topics.values()
            for number, model in enumerate(topic.partitions)
        ]

    # --- stores -------------------------------------------------------------------------------

    def connect(self) -> FaultyObjectStore:
        store = FaultyObjectStore(self.objects, self.faults, random=self.random, clock=clock_ms)
        self.stores.append(store)
        return store

    def change_faults(self, faults: tuple[Rule, ...], metadata_failing_share: float) -> None:
        self.faults = faults
        self.metadata.failing_share = metadata_failing_share
        for store in self.stores:
            store.rules = [*faults]

    async def wait_for_late_writes(self) -> None:
        """Wait until all writes in flight have landed."""
        for store in self.stores:
            await store.wait_for_late_writes()

    async def retry(self, store: FaultyObjectStore, operation: Callable[[], Awaitable[object]]):
        """Retry an operation that the stores may fail several times, but not forever."""
        failing_share = self.metadata.failing_share
        for tries in range(TRIES_MAX):
            if tries > TRIES_WITH_FAULTS_MAX:
                store.rules = [*NO_FAULTS]
                self.metadata.failing_share = 0
            try:
                await operation()
            except OperatingError as error:
                reason = error
                await asyncio.sleep(0.1)
                continue
            store.rules = [*self.faults]
            self.metadata.failing_share = failing_share
            return
        raise InvariantViolationError(f"no success in {TRIES_MAX} tries") from reason

    # --- brokers ------------------------------------------------------------------------------

    def new_broker(self, broker_id: int) -> Broker:
        return Broker(self, broker_id, self.connect(), self.settings)

    async def register(self, broker: Broker) -> None:
        """Start a broker session; replaces a registered broker of the same id."""
        await self.retry(broker.store, broker.start_session)
        self.registered[broker.id] = broker

    def allocate_epoch(self, at_least: int) -> int:
        self.epoch = max(self.epoch + 1, at_least)
        return self.epoch

    def live_brokers(self) -> list[Broker]:
        return list(self.registered.values())

    async def take_over(self, broker: Broker, successors: Sequence[Broker]) -> None:
        """Treat a broker as dead, and assign its partitions to others."""
        if self.registered.get(broker.id) is broker:
            del self.registered[broker.id]
        await self.take_over_session(broker, broker.epoch, successors)

    async def start_next_session(self, broker: Broker) -> None:
        """A new session in the same process, which takes over from the old one."""
        before = broker.epoch
        await self.register(broker)
        await self.take_over_session(broker, before, self.live_brokers())

    async def restart_damaged_sessions(self) -> None:
        """Restart sessions that ended because a repeated PUT found its own object damaged."""
        for broker in self.live_brokers():
            if self.has_damage and broker.engine.wal.is_closed:
                await self.start_next_session(broker)

    async def take_over_session(
        self, broker: Broker, epoch: int, successors: Sequence[Broker]
    ) -> None:
        """Fence one session of a broker, and assign its partitions to others."""
        await self.retry(self._controller, lambda: self._streams.fence(broker.id, epoch))
        unowned = [
            (topic, number)
            for topic, number, _ in self.partitions()
            if (owner := self.owners[topic.id, number]).broker is broker
            and owner.assignment.broker_epoch == epoch
        ]
        await self.assign(unowned, successors, fully_rolled=False)

    # --- partitions ---------------------------------------------------------------------------

    def owner(self, topic: SimulatedTopic, number: int) -> Broker:
        return self.owners[topic.id, number].broker

    def is_owner(self, broker: Broker, topic: SimulatedTopic, number: int) -> bool:
        owner = self.owners.get((topic.id, number))
        return (
            owner is not None
            and owner.broker is broker
            and owner.assignment.broker_epoch == broker.epoch
        )

    def log(self, topic: SimulatedTopic, number: int) -> PartitionLog:
        """The log as its owner serves it."""
        log = self.owner(topic, number).engine.logs.get(topic.name, number)
        assert log is not None
        return log

    async def assign(
        self,
        partitions: Sequence[Partition],
        successors: Sequence[Broker],
        *,
        fully_rolled: bool,
        is_new: bool = False,
    ) -> None:
        """Assign partitions to brokers, which open them."""
        by_successor: dict[Broker, list[Partition]] = defaultdict(list)
        for topic, number in partitions:
            successor = self.random.choice(successors)
            by_successor[successor].append((topic, number))
            before = self.owners.get((topic.id, number))
            assignment = Assignment(
                topic=topic.name,
                topic_id=topic.id,
                partition=number,
                broker_id=successor.id,
                broker_epoch=successor.epoch,
                leader_epoch=before.assignment.leader_epoch + 1 if before else 0,
                fully_rolled=fully_rolled,
            )
            self.owners[topic.id, number] = Owner(
                successor,
                await self.metadata.assign(assignment),
                is_new,
                (before.assignment.broker_id, before.assignment.broker_epoch)
                if before and not fully_rolled
                else None,
            )
        for successor, assigned in by_successor.items():
            try:
                await self.retry(successor.store, lambda: successor.open(assigned))  # noqa: B023
            except NotOwnerError:
                if not (self.has_damage and successor.engine.wal.is_closed):
                    raise
                # It repeated a PUT, and found its own object damaged.
                await self.start_next_session(successor)
                continue
            for topic, number in assigned:
                log = successor.engine.logs.get(topic.name, number)
                assert log is not None
                topic.partitions[number].check_opened(log)

    def to_open(
        self, topic: SimulatedTopic, number: int, state: PartitionState | None
    ) -> PartitionToOpen:
        owner = self.owners[topic.id, number]
        return PartitionToOpen(
            topic=topic.name,
            topic_id=topic.id,
            directory=topic.directory,
            partition=number,
            settings=self.log_settings[topic.id],
            leader_epoch=owner.assignment.leader_epoch,
            start_offset=state.log_start_offset if state else 0,
            end_offset=state.rolled_end if state else 0,
            fully_rolled=owner.assignment.fully_rolled,
            is_new=owner.is_new,
            lost_owner=owner.lost_session,
        )

    # --- dead streams -------------------------------------------------------------------------

    async def clean_streams(self) -> None:
        await self._cleaner.clean(self._rolled_ends, self._session)

    async def clean_streams_later(self, later_ms: int) -> None:
        """Clean up streams as if that much time had passed."""
        cleaner = DeadStreamCleaner(self.objects, NAMESPACE, lambda: clock_ms() + later_ms)
        await cleaner.clean(self._rolled_ends, self._session)

    async def _rolled_ends(self, topic_ids: Collection[bytes]) -> RolledEnds:
        existing = {topic.id for topic in self.topics.values()}
        ends: dict[bytes, dict[int, int] | None] = {
            topic_id: {} if topic_id in existing else None for topic_id in topic_ids
        }
        for (topic_id, number), state in (await self.metadata.states()).items():
            if (of_topic := ends.get(topic_id)) is not None:
                of_topic[number] = state.rolled_end
        return ends

    def _session(self, broker_id: int, epoch: int) -> Session:
        broker = self.registered.get(broker_id)
        is_live = broker is not None and broker.epoch == epoch
        return Session.LIVE if is_live else Session.ENDED
