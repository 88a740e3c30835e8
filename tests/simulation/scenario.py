"""One run of the simulation: random events of some brokers, in an order that a seed decides.

Producers run in the background while the scenario reads, rolls, deletes, transfers partitions, and
lets brokers crash, stall and restart. At the end faults stop, all clients finish, and one broker
takes over from all others: then all known records must be there, and no other objects may remain.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from doubles.virtual_time import clock_ms
from kafscale.errors import KafscaleError, OperatingError
from kafscale.storage.segments.segment_writer import RollReason
from simulation.broker_events import BrokerEvents
from simulation.brokers import Broker
from simulation.bucket_reader import BucketReader
from simulation.clients import Producer, Reader
from simulation.cluster import MANY_FAULTS, NO_FAULTS, SOME_FAULTS, SimulatedCluster
from simulation.features import Feature
from simulation.final_checks import RemainingObjects
from simulation.model import SimulatedTopic
from simulation.rewrite_jobs import RewriteJob
from simulation.store_events import StoreEvents
from simulation.transactions import TransactionalProducer, check_all_committed, read_committed

BROKERS_MAX = 3
STEPS_MAX = 20
BATCHES_MAX = 25
FINISH_SECONDS_MAX = 3600
RESTART_SECONDS = 5


class Scenario:
    """The events of one run."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._reader = Reader(cluster.random)
        self._producers: set[asyncio.Task[None]] = set()
        self._readers: set[asyncio.Task[None]] = set()
        self._brokers = BrokerEvents(cluster)
        self._store = StoreEvents(cluster)
        self._producer_count = 0
        self._job_count = 0

    async def run(self) -> None:
        for broker_id in range(1, self._random.randint(1, BROKERS_MAX) + 1):
            await self._cluster.register(self._cluster.new_broker(broker_id))
        for number in range(self._random.randint(1, 2)):
            await self._create_topic(f"topic-{number}")
        for _ in range(self._random.randint(1, STEPS_MAX)):
            await self._step()
            self._check_starts()
            self._raise_failures()
        await self._check_at_end()

    # --- events -------------------------------------------------------------------------------

    async def _step(self) -> None:
        actions: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (30, self._sleep),
            (18, self._read),
            (3, self._look_up_timestamp),
            (6, self._flush),
            (6, self._roll),
            (4, self._enforce_retention),
            (3, self._delete_records),
            (4, self._brokers.disconnect_store),
            (6, self._change_faults),
            (4, self._brokers.crash),
            (4, self._brokers.take_over_running),
            (4, self._brokers.lose_lease),
            (3, self._brokers.rejoin),
            (3, self._brokers.restart),
            (6, self._brokers.move),
            (4, self._clean_streams),
            (2, self._replace_topic),
        ]
        optional: list[tuple[Feature, int, Callable[[], Awaitable[None]]]] = [
            (Feature.BUCKET_READERS, 8, self._read_bucket),
            (Feature.MERGES, 10, self._merge),
            (Feature.TRANSACTIONS, 10, self._read_committed),
            (Feature.COMPACTION, 8, self._compact),
            (Feature.SUSPENSIONS, 3, self._brokers.suspend),
            (Feature.METADATA_OUTAGES, 3, self._brokers.disconnect_metadata),
            (Feature.CLOCK_STEPS, 3, self._brokers.step_clock),
            (Feature.REFUSED_PARTITIONS, 2, self._store.refuse_partitions),
            (Feature.DAMAGED_INDEXES, 4, self._store.damage_index),
            (Feature.DAMAGED_SEGMENTS, 3, self._store.damage_segment),
            (Feature.DAMAGED_WAL, 10, self._damage_wal),
        ]
        features = self._cluster.features
        actions += [(weight, action) for feature, weight, action in optional if feature in features]
        weights, choices = zip(*actions, strict=True)
        (action,) = self._random.choices(choices, weights)
        await action()

    async def _sleep(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0.005, 0.1, 1, 5)))

    async def _read(self) -> None:
        topic, number, _ = self._random.choice(self._cluster.partitions())
        broker = self._random.choice([self._cluster.owner(topic, number), *self._brokers.awake()])
        reading = asyncio.create_task(self._reader.read_somewhere(broker, topic, number))
        self._readers.add(reading)
        if self._random.random() < 0.5:
            await asyncio.wait({reading})

    async def _read_committed(self) -> None:
        topic, number, _ = self._random.choice(self._cluster.partitions())
        broker = self._random.choice([self._cluster.owner(topic, number), *self._brokers.awake()])
        reading = read_committed(self._cluster, broker, topic, number)
        self._readers.add(asyncio.create_task(reading))

    async def _look_up_timestamp(self) -> None:
        topic, number, _ = self._random.choice(self._cluster.partitions())
        lookup = self._reader.look_up_timestamp(self._cluster.owner(topic, number), topic, number)
        self._readers.add(asyncio.create_task(lookup))

    async def _flush(self) -> None:
        flushing = asyncio.ensure_future(self._brokers.any_broker().engine.wal.flush())
        await asyncio.wait({flushing}, timeout=5)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)

    async def _roll(self) -> None:
        topic, number, _ = self._random.choice(self._cluster.partitions())
        owner = self._cluster.owner(topic, number)
        owner.engine.roll_scheduler.schedule_roll(
            self._cluster.log(topic, number), RollReason.EXPLICIT
        )

    async def _enforce_retention(self) -> None:
        broker = self._random.choice([*self._cluster.live_brokers(), *self._brokers.awake()])
        for log in list(broker.engine.logs):
            try:
                await broker.engine.retention.enforce(log)
            except KafscaleError:
                return

    async def _delete_records(self) -> None:
        topic, number, model = self._random.choice(self._cluster.partitions())
        log = self._cluster.log(topic, number)
        offset = self._random.randint(log.start_offset, log.high_watermark)
        model.delete_requested_to = max(model.delete_requested_to, offset)
        try:
            await self._cluster.owner(topic, number).engine.retention.delete_records(log, offset)
        except OperatingError:
            return
        model.deleted_to = max(model.deleted_to, offset)

    async def _change_faults(self) -> None:
        faults = self._random.choice((NO_FAULTS, NO_FAULTS, SOME_FAULTS, SOME_FAULTS, MANY_FAULTS))
        self._cluster.metadata.has_late_commits = Feature.LATE_COMMITS in self._cluster.features
        self._cluster.change_faults(faults, self._random.choice((0, 0, 0.3)))

    async def _read_bucket(self) -> None:
        """Read a partition without metadata."""
        topic, number, _ = self._random.choice(self._cluster.partitions())
        reading = asyncio.create_task(BucketReader(self._cluster).check(topic, number))
        self._readers.add(reading)
        if self._random.random() < 0.5:
            await asyncio.wait({reading})

    async def _merge(self) -> None:
        self._start_job(is_compaction=False)

    async def _compact(self) -> None:
        self._start_job(is_compaction=True)

    def _start_job(self, *, is_compaction: bool) -> None:
        self._job_count += 1
        partitions = self._random.sample(
            self._cluster.partitions(), len(self._cluster.partitions())
        )
        topic, number, _ = max(
            partitions, key=lambda each: min(len(self._cluster.log(*each[:2]).segments), 3)
        )
        job = RewriteJob(self._cluster, self._job_count, topic, number, is_compaction=is_compaction)
        self._readers.add(asyncio.create_task(job.run(self._assumed_leader)))

    async def _clean_streams(self) -> None:
        with suppress(OperatingError):
            await self._cluster.clean_streams()

    async def _damage_wal(self) -> None:
        """Damage an object of the WAL; its broker may crash before segments have its records."""
        broker = self._cluster.registered.get(await self._store.damage_wal() or -1)
        if broker is not None and self._random.random() < 0.7:
            await self._brokers.crash(broker)

    # --- topics -------------------------------------------------------------------------------

    async def _create_topic(self, name: str) -> None:
        topic = await self._cluster.new_topic(name, self._random.randint(1, 3))
        partitions = [(topic, number) for number in range(len(topic.partitions))]
        await self._cluster.assign(
            partitions, self._cluster.live_brokers(), fully_rolled=True, is_new=True
        )
        self._start_producers(topic)

    async def _replace_topic(self) -> None:
        """Delete a topic and create another of the same name.

        Zombies do not notice, and writes of the old topic take effect at any later time.
        """
        topic = self._random.choice(list(self._cluster.topics.values()))
        topic.is_deleted = True
        await self._cluster.metadata.remove_topic(topic)
        for broker in self._cluster.live_brokers():
            broker.engine.close_topic(topic.id, topic.name, topic.directory)
        while True:
            try:
                await self._brokers.any_broker().engine.delete_objects(topic.directory)
                break
            except OperatingError:
                await asyncio.sleep(0.5)
        await self._create_topic(topic.name)

    def _start_producers(self, topic: SimulatedTopic) -> None:
        for partition in range(len(topic.partitions)):
            for _ in range(self._random.randint(0, 2)):
                self._producer_count += 1
                is_transactional = (
                    Feature.TRANSACTIONS in self._cluster.features and self._random.random() < 0.4
                )
                producer = (TransactionalProducer if is_transactional else Producer)(
                    self._cluster,
                    self._producer_count,
                    topic,
                    partition,
                    idempotent=is_transactional or self._random.random() < 0.7,
                    assumed_leader=self._assumed_leader,
                )
                batches_max = self._random.randint(1, BATCHES_MAX)
                self._producers.add(asyncio.create_task(producer.run(batches_max)))

    def _assumed_leader(self, topic: SimulatedTopic, partition: int) -> Broker:
        """The broker that a producer sends to: sometimes a former leader."""
        if self._brokers.zombies and self._random.random() < 0.3:
            return self._random.choice(self._brokers.zombies)
        return self._cluster.owner(topic, partition)

    # --- checks -------------------------------------------------------------------------------

    def _check_starts(self) -> None:
        for topic, number, model in self._cluster.partitions():
            model.check_start(self._cluster.log(topic, number), self._latest_ms())
            if Feature.TRANSACTIONS in self._cluster.features:
                model.transactions.check_stable(self._cluster.log(topic, number))

    def _latest_ms(self) -> int:
        """The latest time that a wall clock may have shown until now."""
        return clock_ms() + self._cluster.clock_ahead_ms

    def _raise_failures(self) -> None:
        for tasks in (self._producers, self._readers):
            for task in [task for task in tasks if task.done()]:
                tasks.discard(task)
                task.result()

    async def _check_at_end(self) -> None:
        """Let all clients finish, and check everything."""
        self._cluster.change_faults(NO_FAULTS, 0)
        await self._brokers.end_zombies()
        async with asyncio.timeout(FINISH_SECONDS_MAX):
            await asyncio.gather(*self._readers)
            while producers := {each for each in self._producers if not each.done()}:
                await self._cluster.restart_damaged_sessions()
                await asyncio.wait(producers, timeout=RESTART_SECONDS)
            await asyncio.gather(*self._producers)
        await self._read_everything()
        last = self._cluster.live_brokers()
        for broker in last:
            await (broker.crash() if self._random.random() < 0.5 else broker.stop())
        await self._cluster.wait_for_late_writes()
        successor = self._cluster.new_broker(self._random.randint(1, BROKERS_MAX))
        await self._cluster.register(successor)
        for broker in last:
            await self._cluster.take_over(broker, [successor])
        await self._read_everything()
        await RemainingObjects(self._cluster).check(successor)

    async def _read_everything(self) -> None:
        for topic, number, model in self._cluster.partitions():
            owner = self._cluster.owner(topic, number)
            await self._reader.read_all(owner, topic, number)
            if Feature.TRANSACTIONS in self._cluster.features:
                await check_all_committed(self._cluster, owner, topic, number)
            model.check_start(self._cluster.log(topic, number), self._latest_ms())
