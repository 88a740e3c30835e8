"""One run of the simulation: what happens to some brokers, in an order that a seed decides.

Producers go on by themselves while the scenario reads, rolls, deletes, moves partitions, and lets
brokers crash, sleep and start again. In the end the weather is fine, everybody finishes, and one
broker takes over from all others: then all that is known must be there, and nothing else may be
left behind.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from kafscale.errors import KafscaleError, NotOwnerError, OperatingError
from kafscale.storage.formats import object_keys, wal_object
from kafscale.storage.wal.dead_stream_cleaner import ABANDONED_MS, FENCE_RETENTION_MS
from kafscale.storage.wal.writer import LATE_PUT_MS
from kafscale.testing.virtual_time import clock_ms
from simulation.brokers import Broker
from simulation.clients import Producer, Reader
from simulation.model import NAMESPACE, BrokenPromiseError, Identity
from simulation.world import CALM, ROUGH, STORM, World

BROKERS_MAX = 3
STEPS_MAX = 20
BATCHES_MAX = 25
PATIENCE_SECONDS = 3600


class Scenario:
    """What happens in one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.random
        self._reader = Reader(world.random)
        self._producers: set[asyncio.Task[None]] = set()
        self._readers: set[asyncio.Task[None]] = set()
        self._zombies: list[Broker] = []
        self._producer_count = 0

    async def run(self) -> None:
        for broker_id in range(1, self._random.randint(1, BROKERS_MAX) + 1):
            await self._world.register(self._world.new_broker(broker_id))
        for number in range(self._random.randint(1, 2)):
            await self._create_topic(f"topic-{number}")
        for _ in range(self._random.randint(1, STEPS_MAX)):
            await self._step()
            self._check_starts()
            self._raise_failures()
        await self._finish()

    # --- what may happen ----------------------------------------------------------------------

    async def _step(self) -> None:
        actions: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (30, self._wait),
            (18, self._read),
            (3, self._look_for_time),
            (6, self._flush),
            (6, self._roll),
            (4, self._retain),
            (3, self._delete_records),
            (4, self._go_down),
            (6, self._change_weather),
            (4, self._crash),
            (4, self._fall_asleep),
            (4, self._lose_lease),
            (3, self._wake_up),
            (3, self._restart),
            (6, self._move),
            (4, self._reap),
            (2, self._replace_topic),
        ]
        weights, choices = zip(*actions, strict=True)
        (action,) = self._random.choices(choices, weights)
        await action()

    async def _wait(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0.005, 0.1, 1, 5)))

    async def _read(self) -> None:
        topic, number, _ = self._random.choice(self._world.partitions())
        broker = self._random.choice([self._world.owner(topic, number), *self._zombies])
        reading = asyncio.create_task(self._reader.read_somewhere(broker, topic, number))
        self._readers.add(reading)
        if self._random.random() < 0.5:
            await asyncio.wait({reading})

    async def _look_for_time(self) -> None:
        topic, number, _ = self._random.choice(self._world.partitions())
        looking = self._reader.look_for_time(self._world.owner(topic, number), topic, number)
        self._readers.add(asyncio.create_task(looking))

    async def _flush(self) -> None:
        flushing = asyncio.ensure_future(self._any_broker().engine.wal.flush())
        await asyncio.wait({flushing}, timeout=5)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)

    async def _roll(self) -> None:
        topic, number, _ = self._random.choice(self._world.partitions())
        owner = self._world.owner(topic, number)
        owner.engine.roll_scheduler.schedule_roll(self._world.log(topic, number), "explicit")

    async def _retain(self) -> None:
        broker = self._random.choice([*self._world.lives(), *self._zombies])
        for log in list(broker.engine.logs):
            try:
                await broker.engine.retention.enforce(log)
            except KafscaleError:
                return

    async def _delete_records(self) -> None:
        topic, number, model = self._random.choice(self._world.partitions())
        log = self._world.log(topic, number)
        offset = self._random.randint(log.start_offset, log.high_watermark)
        model.delete_asked_to = max(model.delete_asked_to, offset)
        try:
            await self._world.owner(topic, number).engine.retention.delete_records(log, offset)
        except OperatingError:
            return
        model.deleted_to = max(model.deleted_to, offset)

    async def _change_weather(self) -> None:
        weather = self._random.choice((CALM, CALM, ROUGH, ROUGH, STORM))
        self._world.change_weather(weather, self._random.choice((0, 0, 0.3)))

    async def _go_down(self) -> None:
        """Cut a broker off from its store for a while."""
        store = self._any_broker().store
        store.is_down = True
        await asyncio.sleep(self._random.uniform(0.1, 5))
        store.is_down = False

    async def _reap(self) -> None:
        with suppress(OperatingError):
            await self._world.reap()

    # --- brokers that come and go -------------------------------------------------------------

    def _any_broker(self) -> Broker:
        return self._random.choice(self._world.lives())

    async def _crash(self) -> None:
        broker = self._any_broker()
        await broker.crash()
        if self._random.random() < 0.5:
            await asyncio.sleep(self._random.uniform(0, 3))
        await self._succeed(broker)

    async def _fall_asleep(self) -> None:
        """Let a broker be taken for dead, although it goes on and believes in itself."""
        broker = self._any_broker()
        broker.store.is_down = self._random.random() < 0.5
        self._zombies.append(broker)
        if self._random.random() < 0.5:
            # It makes segments and trims its stream just while others read both.
            loop, delay_seconds = asyncio.get_running_loop(), self._random.uniform(0, 0.5)
            for log in broker.engine.logs:
                loop.call_later(
                    delay_seconds, broker.engine.roll_scheduler.schedule_roll, log, "explicit"
                )
        await self._succeed(broker)
        broker.store.is_down = False

    async def _lose_lease(self) -> None:
        """Let a broker find out by itself that it is taken for dead, and begin again."""
        broker = self._any_broker()
        broker.engine.end_session()
        if len(self._world.registered) > 1 and self._random.random() < 0.5:
            others = [other for other in self._world.lives() if other is not broker]
            await self._world.bury(broker, others)
            await self._world.register(broker)
        else:
            await self._begin_again(broker)

    async def _begin_again(self, broker: Broker) -> None:
        """A new life in the same process, which takes over from the old one."""
        before = broker.epoch
        await self._world.register(broker)
        await self._world.bury_life(broker, before, self._world.lives())

    async def _wake_up(self) -> None:
        """Let a broker that was taken for dead find out, and begin again if its place is free."""
        if not self._zombies:
            return
        zombie = self._zombies.pop(self._random.randrange(len(self._zombies)))
        if zombie.id in self._world.registered:
            await zombie.crash()
        else:
            zombie.engine.end_session()
            await self._world.register(zombie)

    async def _restart(self) -> None:
        broker = self._any_broker()
        await broker.stop()
        await self._succeed(broker)

    async def _succeed(self, broker: Broker) -> None:
        """Have others take over from a broker, or a new process of the same id."""
        others = [other for other in self._world.lives() if other is not broker]
        if not others or self._random.random() < 0.5:
            successor = self._world.new_broker(broker.id)
            await self._world.register(successor)
            others.append(successor)
        await self._world.bury(broker, others)

    async def _move(self) -> None:
        """Hand a partition over in good order, if its owner can."""
        topic, number, _ = self._random.choice(self._world.partitions())
        owner, log = self._world.owner(topic, number), self._world.log(topic, number)
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
            await self._world.give([(topic, number)], self._world.lives(), fully_rolled=True)
        else:
            others = [other for other in self._world.lives() if other is not owner]
            if others:
                await self._world.give([(topic, number)], others, fully_rolled=True)
                owner.engine.remove(log)
            else:
                log.resume_appends()

    async def _end_zombies(self) -> None:
        for zombie in self._zombies:
            await zombie.crash()
        self._zombies.clear()

    # --- topics -------------------------------------------------------------------------------

    async def _create_topic(self, name: str) -> None:
        topic = self._world.new_topic(name, self._random.randint(1, 3))
        places = [(topic, number) for number in range(len(topic.partitions))]
        await self._world.give(places, self._world.lives(), fully_rolled=True, is_new=True)
        self._begin_producers(topic)

    async def _replace_topic(self) -> None:
        """Delete a topic and create another of the same name, after its last object is gone."""
        await self._end_zombies()
        topic = self._random.choice(list(self._world.topics.values()))
        topic.is_deleted = True
        brokers = self._world.lives()
        closed = [log for broker in brokers for log in broker.engine.logs.close(topic.name)]
        await self._world.settle()
        while True:
            try:
                await self._any_broker().engine.logs.delete_objects(topic.name, closed)
                break
            except OperatingError:
                await asyncio.sleep(0.5)
        await self._world.settle()
        await self._delete_quietly(topic)
        await self._create_topic(topic.name)

    async def _delete_quietly(self, topic: Identity) -> None:
        """What landed after the deletion is beyond what a listing can know."""
        prefix = object_keys.topic_prefix(NAMESPACE, topic.name)
        async for chunk in self._world.objects.list(prefix):
            await self._world.objects.delete([item.key for item in chunk])

    def _begin_producers(self, topic: Identity) -> None:
        for partition in range(len(topic.partitions)):
            for _ in range(self._random.randint(0, 2)):
                self._producer_count += 1
                producer = Producer(
                    self._world,
                    self._producer_count,
                    topic,
                    partition,
                    idempotent=self._random.random() < 0.7,
                    broker_in_sight=self._broker_in_sight,
                )
                batches_max = self._random.randint(1, BATCHES_MAX)
                self._producers.add(asyncio.create_task(producer.run(batches_max)))

    def _broker_in_sight(self, topic: Identity, partition: int) -> Broker:
        """Whom a producer takes for the leader: now and then, one that no longer is."""
        if self._zombies and self._random.random() < 0.3:
            return self._random.choice(self._zombies)
        return self._world.owner(topic, partition)

    # --- checks -------------------------------------------------------------------------------

    def _check_starts(self) -> None:
        for topic, number, model in self._world.partitions():
            model.check_start(self._world.log(topic, number), clock_ms())

    def _raise_failures(self) -> None:
        for tasks in (self._producers, self._readers):
            for task in [task for task in tasks if task.done()]:
                tasks.discard(task)
                task.result()

    async def _finish(self) -> None:
        """Let everybody come to an end, and look at everything."""
        self._world.change_weather(CALM, 0)
        await self._end_zombies()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*self._readers)
            await asyncio.gather(*self._producers)
        await self._read_everything()
        last = self._world.lives()
        for broker in last:
            await (broker.crash() if self._random.random() < 0.5 else broker.stop())
        await self._world.settle()
        heir = self._world.new_broker(self._random.randint(1, BROKERS_MAX))
        await self._world.register(heir)
        for broker in last:
            await self._world.bury(broker, [heir])
        await self._read_everything()
        await self._check_left_over(heir)

    async def _read_everything(self) -> None:
        for topic, number, model in self._world.partitions():
            await self._reader.read_all(self._world.owner(topic, number), topic, number)
            model.check_start(self._world.log(topic, number), clock_ms())

    async def _check_left_over(self, heir: Broker) -> None:
        """After a stop, segments hold everything, and nothing else is left."""
        for log in list(heir.engine.logs):
            await heir.engine.roll_scheduler.roll(log, "explicit")
            with suppress(OperatingError):  # The engine may be about to do the same.
                await heir.engine.retention.enforce(log)
        await asyncio.sleep(LATE_PUT_MS / 1000 + 5)
        await heir.stop()
        await self._world.reap()
        await self._check_objects(heir)
        if heir.engine.wal.unflushed_bytes:
            raise BrokenPromiseError("bytes wait to be written after a stop")
        heir.engine.end_session()
        if heir.engine.memory.used_bytes:
            raise BrokenPromiseError(
                f"{heir.engine.memory.used_bytes} bytes of memory are not given back"
            )
        self._world.registered.clear()
        for _ in range(2):  # At first the last stream gets its fence.
            await self._world.reap_in_the_end(ABANDONED_MS + FENCE_RETENTION_MS + 1)
        if left := [key for key in await self._keys() if object_keys.parse_wal(NAMESPACE, key)]:
            raise BrokenPromiseError(f"{left} are left of the WAL when everybody is gone")

    async def _check_objects(self, heir: Broker) -> None:
        """Every segment is there with its index, and of each stream only its newest object."""
        keys = await self._keys()
        expected = {
            make(NAMESPACE, log.topic, log.partition, segment.base_offset)
            for log in heir.engine.logs
            for segment in log.segments
            for make in (object_keys.segment_key, object_keys.index_key)
        }
        segments = {key for key in keys if object_keys.parse_segment(NAMESPACE, key)}
        if missing := expected - segments:
            raise BrokenPromiseError(f"{sorted(missing)} should be there")
        # An index that was written late stays behind: nobody ever sees it.
        if left := {key for key in segments - expected if key.endswith(object_keys.SEGMENT_SUFFIX)}:
            raise BrokenPromiseError(f"{sorted(left)} should be gone")
        counting: Counter[tuple[int, int]] = Counter()
        for key in keys:
            place = object_keys.parse_wal(NAMESPACE, key)
            if place is not None and not await self._is_fence(key):
                counting[place.broker_id, place.epoch] += 1
        if any(count > 1 for count in counting.values()):
            raise BrokenPromiseError(f"more than the newest are left of the WAL: {counting}")

    async def _keys(self) -> list[str]:
        listing = self._world.objects.list(f"{NAMESPACE}/")
        return [item.key async for chunk in listing for item in chunk]

    async def _is_fence(self, key: str) -> bool:
        return wal_object.decode(key, await self._world.objects.get(key)).header.is_fence
