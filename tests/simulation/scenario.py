"""One run of the simulation: what happens to a broker, in an order that a seed decides.

Producers go on by themselves while the scenario reads, rolls, deletes, crashes and starts again. In
the end the weather is fine, everybody finishes, and the broker is started once more: then all that
is known must be there, and nothing else may be left behind.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from kafscale.errors import KafscaleError, OperatingError
from kafscale.storage import layout, wal
from kafscale.storage.flush import LINGER_MS
from kafscale.testing.virtual_time import clock_ms
from simulation.clients import Producer, Reader
from simulation.model import BrokenPromiseError, Identity
from simulation.world import CALM, NAMESPACE, ROUGH, STORM, Life, World

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
        self._zombies: list[Life] = []
        self._producer_count = 0
        self._life: Life

    async def run(self) -> None:
        for number in range(self._random.randint(1, 2)):
            self._world.new_topic(f"topic-{number}", self._random.randint(1, 3))
        self._life = await self._world.begin_life()
        for topic in list(self._world.topics.values()):
            self._begin_producers(topic)
        for _ in range(self._random.randint(1, STEPS_MAX)):
            await self._step()
            self._check_starts()
            self._raise_failures()
        await self._finish()

    # --- what may happen ----------------------------------------------------------------------

    async def _step(self) -> None:
        actions: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (30, self._wait), (18, self._read), (3, self._look_for_time), (6, self._flush),
            (6, self._roll), (4, self._retain), (3, self._delete_records), (4, self._go_down),
            (6, self._change_weather), (5, self._crash), (4, self._wake_as_zombie),
            (3, self._restart), (2, self._replace_topic),
        ]  # fmt: skip
        weights, choices = zip(*actions, strict=True)
        (action,) = self._random.choices(choices, weights)
        await action()

    async def _wait(self) -> None:
        await asyncio.sleep(self._random.choice((0, 0.005, 0.1, 1, 5)))

    async def _read(self) -> None:
        life = self._random.choice([self._life, *self._zombies])
        topic, number, _ = self._random.choice(self._world.partitions())
        reading = asyncio.create_task(self._reader.read_somewhere(life, topic, number))
        self._readers.add(reading)
        if self._random.random() < 0.5:
            await asyncio.wait({reading})

    async def _look_for_time(self) -> None:
        topic, number, _ = self._random.choice(self._world.partitions())
        looking = self._reader.look_for_time(self._life, topic, number)
        self._readers.add(asyncio.create_task(looking))

    async def _flush(self) -> None:
        flushing = asyncio.ensure_future(self._life.engine.wal.flush())
        await asyncio.wait({flushing}, timeout=5)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)

    async def _roll(self) -> None:
        topic, number, _ = self._random.choice(self._world.partitions())
        log = self._life.engine.logs.find(topic.name, number)
        self._life.engine.upkeep.request(log, "explicit")

    async def _retain(self) -> None:
        life = self._random.choice([self._life, *self._zombies])
        for log in list(life.engine.logs):
            try:
                await life.engine.retention.enforce(log)
            except KafscaleError:
                return

    async def _delete_records(self) -> None:
        topic, number, model = self._random.choice(self._world.partitions())
        log = self._life.engine.logs.find(topic.name, number)
        offset = self._random.randint(log.start_offset, log.high_watermark)
        model.delete_asked_to = max(model.delete_asked_to, offset)
        try:
            await self._life.engine.retention.delete_records(log, offset)
        except OperatingError:
            return
        model.deleted_to = max(model.deleted_to, offset)

    async def _change_weather(self) -> None:
        weather = self._random.choice((CALM, CALM, ROUGH, ROUGH, STORM))
        self._world.change_weather(weather, self._random.choice((0, 0, 0.3)))

    async def _go_down(self) -> None:
        """Cut the broker off from its store for a while."""
        store = self._life.store
        store.is_down = True
        await asyncio.sleep(self._random.uniform(0.1, 5))
        store.is_down = False

    # --- lives --------------------------------------------------------------------------------

    async def _crash(self) -> None:
        await self._life.crash()
        if self._random.random() < 0.5:
            await asyncio.sleep(self._random.uniform(0, 3))
        self._life = await self._world.begin_life()

    async def _wake_as_zombie(self) -> None:
        """Begin a new life although the old one goes on, and believes in itself."""
        before = self._life
        is_down = self._random.random() < 0.5
        before.store.is_down = is_down
        self._zombies.append(before)
        self._life = await self._world.begin_life()
        before.store.is_down = False

    async def _restart(self) -> None:
        await self._life.stop()
        self._life = await self._world.begin_life()

    async def _end_zombies(self) -> None:
        for zombie in self._zombies:
            await zombie.crash()
        self._zombies.clear()

    # --- topics -------------------------------------------------------------------------------

    async def _replace_topic(self) -> None:
        """Delete a topic and create another of the same name, after its last object is gone."""
        await self._end_zombies()
        topic = self._random.choice(list(self._world.topics.values()))
        topic.is_deleted = True
        logs = self._life.engine.logs
        closed = list(logs.of_topic(topic.name))
        logs.close(topic.name)
        await self._world.settle()
        while True:
            try:
                await logs.delete_objects(topic.name, closed)
                break
            except OperatingError:
                await asyncio.sleep(0.5)
        await self._world.settle()
        await self._delete_quietly(topic)
        successor = self._world.new_topic(topic.name, self._random.randint(1, 3))
        logs.create(self._world.to_open(successor))
        self._begin_producers(successor)

    async def _delete_quietly(self, topic: Identity) -> None:
        """What landed after the deletion is beyond what a listing can know."""
        prefix = layout.topic_prefix(NAMESPACE, topic.name)
        async for chunk in self._world.objects.list(prefix):
            await self._world.objects.delete([item.key for item in chunk])

    def _begin_producers(self, topic: Identity) -> None:
        for partition in range(len(topic.partitions)):
            for _ in range(self._random.randint(0, 2)):
                self._producer_count += 1
                producer = Producer(
                    self._producer_count, topic, partition,
                    idempotent=self._random.random() < 0.7, random=self._random,
                    life=self._broker_in_sight,
                )  # fmt: skip
                batches_max = self._random.randint(1, BATCHES_MAX)
                self._producers.add(asyncio.create_task(producer.run(batches_max)))

    def _broker_in_sight(self) -> Life:
        """Whom a producer takes for the leader: now and then, one that no longer is."""
        if self._zombies and self._random.random() < 0.3:
            return self._random.choice(self._zombies)
        return self._life

    # --- checks -------------------------------------------------------------------------------

    def _check_starts(self) -> None:
        for topic, number, model in self._world.partitions():
            model.check_start(self._life.engine.logs.find(topic.name, number), clock_ms())

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
        if self._random.random() < 0.5:
            await self._life.crash()
        else:
            await self._life.stop()
        await self._world.settle()
        self._life = await self._world.begin_life()
        await self._read_everything()
        await self._check_left_over()

    async def _read_everything(self) -> None:
        for topic, number, model in self._world.partitions():
            await self._reader.read_all(self._life, topic, number)
            model.check_start(self._life.engine.logs.find(topic.name, number), clock_ms())

    async def _check_left_over(self) -> None:
        """After a stop, segments hold everything, and nothing else is left."""
        life = self._life
        for log in list(life.engine.logs):
            await life.engine.upkeep.roll(log, "explicit")
            with suppress(OperatingError):  # The engine may be about to do the same.
                await life.engine.retention.enforce(log)
        await asyncio.sleep(LINGER_MS / 1000 + 5)
        await life.stop()
        await self._check_objects()
        if life.engine.wal.unflushed_bytes:
            raise BrokenPromiseError("bytes wait to be written after a stop")
        for topic in self._world.topics.values():
            life.engine.logs.close(topic.name)
        if life.engine.memory.used_bytes:
            raise BrokenPromiseError(
                f"{life.engine.memory.used_bytes} bytes of memory are not given back"
            )

    async def _check_objects(self) -> None:
        """Every segment is there with its index, and of the WAL only its newest object."""
        keys = [
            item.key async for chunk in self._world.objects.list(f"{NAMESPACE}/") for item in chunk
        ]
        expected = {
            make(NAMESPACE, log.topic, log.partition, segment.base_offset)
            for log in self._life.engine.logs
            for segment in log.segments
            for make in (layout.segment_key, layout.index_key)
        }
        segments = {key for key in keys if layout.parse_segment(NAMESPACE, key)}
        if missing := expected - segments:
            raise BrokenPromiseError(f"{sorted(missing)} should be there")
        # An index that was written late stays behind: nobody ever sees it.
        if left := {key for key in segments - expected if key.endswith(layout.SEGMENT_SUFFIX)}:
            raise BrokenPromiseError(f"{sorted(left)} should be gone")
        wal_keys = [key for key in keys if layout.parse_wal(NAMESPACE, key)]
        counting = [key for key in wal_keys if not await self._is_fence(key)]
        if len(counting) > 1:
            raise BrokenPromiseError(f"{counting} are left of the WAL")

    async def _is_fence(self, key: str) -> bool:
        return wal.decode(key, await self._world.objects.get(key)).header.is_fence
