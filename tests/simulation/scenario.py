"""One run of the simulation: random events of some brokers, in an order that a seed decides.

Producers run in the background while the scenario reads, rolls, deletes, transfers partitions, and
lets brokers crash, stall and restart. At the end faults stop, all clients finish, and one broker
takes over from all others: then all known records must be there, and no other objects may remain.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from doubles.virtual_time import clock_ms
from kafscale.errors import KafscaleError, NotOwnerError, OperatingError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.segments.segment_writer import RollReason
from kafscale.storage.wal.dead_stream_cleaner import ABANDONED_MS, FENCE_RETENTION_MS
from simulation.brokers import Broker
from simulation.clients import Producer, Reader
from simulation.cluster import MANY_FAULTS, NO_FAULTS, SOME_FAULTS, SimulatedCluster
from simulation.model import NAMESPACE, InvariantViolationError, SimulatedTopic

BROKERS_MAX = 3
STEPS_MAX = 20
BATCHES_MAX = 25
FINISH_SECONDS_MAX = 3600


class Scenario:
    """The events of one run."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._random = cluster.random
        self._reader = Reader(cluster.random)
        self._producers: set[asyncio.Task[None]] = set()
        self._readers: set[asyncio.Task[None]] = set()
        self._zombies: list[Broker] = []
        self._producer_count = 0

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
            (4, self._disconnect_store),
            (6, self._change_faults),
            (4, self._crash),
            (4, self._suspend_broker),
            (4, self._lose_lease),
            (3, self._resume_broker),
            (3, self._restart),
            (6, self._move),
            (4, self._clean_streams),
            (2, self._replace_topic),
        ]
        weights, choices = zip(*actions, strict=True)
        (action,) = self._random.choices(choices, weights)
        await action()

    async def _sleep(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0.005, 0.1, 1, 5)))

    async def _read(self) -> None:
        topic, number, _ = self._random.choice(self._cluster.partitions())
        broker = self._random.choice([self._cluster.owner(topic, number), *self._zombies])
        reading = asyncio.create_task(self._reader.read_somewhere(broker, topic, number))
        self._readers.add(reading)
        if self._random.random() < 0.5:
            await asyncio.wait({reading})

    async def _look_up_timestamp(self) -> None:
        topic, number, _ = self._random.choice(self._cluster.partitions())
        lookup = self._reader.look_up_timestamp(self._cluster.owner(topic, number), topic, number)
        self._readers.add(asyncio.create_task(lookup))

    async def _flush(self) -> None:
        flushing = asyncio.ensure_future(self._any_broker().engine.wal.flush())
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
        broker = self._random.choice([*self._cluster.live_brokers(), *self._zombies])
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
        self._cluster.change_faults(faults, self._random.choice((0, 0, 0.3)))

    async def _disconnect_store(self) -> None:
        """Disconnect a broker from its store for a while."""
        store = self._any_broker().store
        store.is_down = True
        await asyncio.sleep(self._random.uniform(0.1, 5))
        store.is_down = False

    async def _clean_streams(self) -> None:
        with suppress(OperatingError):
            await self._cluster.clean_streams()

    # --- brokers ------------------------------------------------------------------------------

    def _any_broker(self) -> Broker:
        return self._random.choice(self._cluster.live_brokers())

    async def _crash(self) -> None:
        broker = self._any_broker()
        await broker.crash()
        if self._random.random() < 0.5:
            await asyncio.sleep(self._random.uniform(0, 3))
        await self._replace_broker(broker)

    async def _suspend_broker(self) -> None:
        """Another broker takes over, although this one continues and believes it is the owner."""
        broker = self._any_broker()
        broker.store.is_down = self._random.random() < 0.5
        self._zombies.append(broker)
        if self._random.random() < 0.5:
            # It rolls segments and trims its stream just while others read both.
            loop, delay_seconds = asyncio.get_running_loop(), self._random.uniform(0, 0.5)
            for log in broker.engine.logs:
                loop.call_later(
                    delay_seconds,
                    broker.engine.roll_scheduler.schedule_roll,
                    log,
                    RollReason.EXPLICIT,
                )
        await self._replace_broker(broker)
        broker.store.is_down = False

    async def _lose_lease(self) -> None:
        """A broker notices that its lease is lost, and starts the next session."""
        broker = self._any_broker()
        broker.engine.end_session()
        if len(self._cluster.registered) > 1 and self._random.random() < 0.5:
            others = [other for other in self._cluster.live_brokers() if other is not broker]
            await self._cluster.take_over(broker, others)
            await self._cluster.register(broker)
        else:
            await self._start_next_session(broker)

    async def _start_next_session(self, broker: Broker) -> None:
        """A new session in the same process, which takes over from the old one."""
        before = broker.epoch
        await self._cluster.register(broker)
        await self._cluster.take_over_session(broker, before, self._cluster.live_brokers())

    async def _resume_broker(self) -> None:
        """A broker that was taken over notices it, and rejoins if its id is free."""
        if not self._zombies:
            return
        zombie = self._zombies.pop(self._random.randrange(len(self._zombies)))
        if zombie.id in self._cluster.registered:
            await zombie.crash()
        else:
            zombie.engine.end_session()
            await self._cluster.register(zombie)

    async def _restart(self) -> None:
        broker = self._any_broker()
        await broker.stop()
        await self._replace_broker(broker)

    async def _replace_broker(self, broker: Broker) -> None:
        """Others take over from a broker, or a new process of the same id does."""
        others = [other for other in self._cluster.live_brokers() if other is not broker]
        if not others or self._random.random() < 0.5:
            successor = self._cluster.new_broker(broker.id)
            await self._cluster.register(successor)
            others.append(successor)
        await self._cluster.take_over(broker, others)

    async def _move(self) -> None:
        """Transfer a partition in an orderly way, if its owner can."""
        topic, number, _ = self._random.choice(self._cluster.partitions())
        owner, log = self._cluster.owner(topic, number), self._cluster.log(topic, number)
        try:
            async with asyncio.timeout(self._random.choice((0.01, 1, 30))):
                await owner.engine.release(log)
        except (TimeoutError, OperatingError, NotOwnerError):
            return
        if self._random.random() < 0.1:
            log.resume_appends()
            return
        if self._random.random() < 0.5:
            owner.engine.remove(log)
            await self._cluster.assign(
                [(topic, number)], self._cluster.live_brokers(), fully_rolled=True
            )
        else:
            others = [other for other in self._cluster.live_brokers() if other is not owner]
            if others:
                await self._cluster.assign([(topic, number)], others, fully_rolled=True)
                owner.engine.remove(log)
            else:
                log.resume_appends()

    async def _end_zombies(self) -> None:
        for zombie in self._zombies:
            await zombie.crash()
        self._zombies.clear()

    # --- topics -------------------------------------------------------------------------------

    async def _create_topic(self, name: str) -> None:
        topic = self._cluster.new_topic(name, self._random.randint(1, 3))
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
        for broker in self._cluster.live_brokers():
            broker.engine.close_topic(topic.id, topic.name, topic.directory)
        while True:
            try:
                await self._any_broker().engine.delete_objects(topic.directory)
                break
            except OperatingError:
                await asyncio.sleep(0.5)
        await self._create_topic(topic.name)

    def _start_producers(self, topic: SimulatedTopic) -> None:
        for partition in range(len(topic.partitions)):
            for _ in range(self._random.randint(0, 2)):
                self._producer_count += 1
                producer = Producer(
                    self._cluster,
                    self._producer_count,
                    topic,
                    partition,
                    idempotent=self._random.random() < 0.7,
                    assumed_leader=self._assumed_leader,
                )
                batches_max = self._random.randint(1, BATCHES_MAX)
                self._producers.add(asyncio.create_task(producer.run(batches_max)))

    def _assumed_leader(self, topic: SimulatedTopic, partition: int) -> Broker:
        """The broker that a producer sends to: sometimes a former leader."""
        if self._zombies and self._random.random() < 0.3:
            return self._random.choice(self._zombies)
        return self._cluster.owner(topic, partition)

    # --- checks -------------------------------------------------------------------------------

    def _check_starts(self) -> None:
        for topic, number, model in self._cluster.partitions():
            model.check_start(self._cluster.log(topic, number), clock_ms())

    def _raise_failures(self) -> None:
        for tasks in (self._producers, self._readers):
            for task in [task for task in tasks if task.done()]:
                tasks.discard(task)
                task.result()

    async def _check_at_end(self) -> None:
        """Let all clients finish, and check everything."""
        self._cluster.change_faults(NO_FAULTS, 0)
        await self._end_zombies()
        async with asyncio.timeout(FINISH_SECONDS_MAX):
            await asyncio.gather(*self._readers)
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
        await self._check_remaining_objects(successor)

    async def _read_everything(self) -> None:
        for topic, number, model in self._cluster.partitions():
            await self._reader.read_all(self._cluster.owner(topic, number), topic, number)
            model.check_start(self._cluster.log(topic, number), clock_ms())

    async def _check_remaining_objects(self, successor: Broker) -> None:
        """After a stop, segments have everything, and no other objects remain."""
        for log in list(successor.engine.logs):
            await successor.engine.roll_scheduler.roll(log, RollReason.EXPLICIT)
            with suppress(OperatingError):  # The engine may be about to do the same.
                await successor.engine.retention.enforce(log)
        await successor.stop()
        await self._cluster.clean_streams()
        await self._check_objects(successor)
        if successor.engine.wal.unflushed_bytes:
            raise InvariantViolationError("unflushed bytes remain after a stop")
        successor.engine.end_session()
        if successor.engine.memory.used_bytes:
            raise InvariantViolationError(
                f"{successor.engine.memory.used_bytes} bytes of memory are not released"
            )
        self._cluster.registered.clear()
        for _ in range(2):  # The first run fences the last stream.
            await self._cluster.clean_streams_later(ABANDONED_MS + FENCE_RETENTION_MS + 1)
        if left := [key for key in await self._keys() if object_keys.parse_wal(NAMESPACE, key)]:
            raise InvariantViolationError(
                f"{left} remain in the WAL after all brokers have stopped"
            )

    async def _check_objects(self, successor: Broker) -> None:
        """Every segment is there with its index, and of each stream only its newest object."""
        keys = await self._keys()
        expected = {
            make(NAMESPACE, log.directory, log.partition, segment.base_offset)
            for log in successor.engine.logs
            for segment in log.segments
            for make in (object_keys.segment_key, object_keys.index_key)
        }
        segments = {key for key in keys if object_keys.parse_segment(NAMESPACE, key)}
        if missing := expected - segments:
            raise InvariantViolationError(f"{sorted(missing)} should be there")
        if left := {key for key in segments - expected if self._should_be_gone(key)}:
            raise InvariantViolationError(f"{sorted(left)} should be gone")
        counting: Counter[tuple[int, int]] = Counter()
        for key in keys:
            partition_key = object_keys.parse_wal(NAMESPACE, key)
            if partition_key is not None and not await self._is_fence(key):
                counting[partition_key.broker_id, partition_key.epoch] += 1
        if any(count > 1 for count in counting.values()):
            raise InvariantViolationError(f"more than the newest are left of the WAL: {counting}")

    def _should_be_gone(self, key: str) -> bool:
        """Whether no write that took effect late can have left this object.

        An index, a segment of a deleted topic, and one below the log start offset are never read.
        """
        ref = object_keys.parse_segment(NAMESPACE, key)
        assert ref is not None
        topic = self._cluster.topics[ref.topic]
        if ref.is_index or ref.directory != topic.directory:
            return False
        return ref.base_offset >= self._cluster.log(topic, ref.partition).start_offset

    async def _keys(self) -> list[str]:
        listing = self._cluster.objects.list(f"{NAMESPACE}/")
        return [item.key async for chunk in listing for item in chunk]

    async def _is_fence(self, key: str) -> bool:
        return wal_object.decode(key, await self._cluster.objects.get(key)).header.is_fence
