"""Brokers of which each may be controller, over one store: they own things, and serve nothing."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from msgspec.structs import replace

from kafscale.broker.cluster.controller.controller import Controller, ControllerSettings
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Compare, Put
from kafscale.metadata.store.memory import MemoryStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.testing import virtual_time
from unit.metadata.breakable import BreakableStore

TTL_MS = 10_000
CLUSTER_ID = "cluster-of-tests"


class Streams:
    """Remembers what was fenced, and fails for those whom it is told to fail for."""

    def __init__(self):
        self.fences = []
        self.failing = set()
        self.seconds = 0.0

    async def fence(self, broker_id, epoch):
        await asyncio.sleep(self.seconds)
        if broker_id in self.failing:
            raise StoreUnavailableError("not now")
        self.fences.append((broker_id, epoch))


class Reaper:
    """Remembers that it was called, and asks what it is told to ask."""

    def __init__(self):
        self.rounds = []
        self.questions = []
        self.owners = []

    async def reap(self, rolled_end, is_live):
        ends = {question: rolled_end(*question) for question in self.questions}
        self.rounds.append((ends, {owner: is_live(*owner) for owner in self.owners}))
        return len(ends)


class Restorer:
    """Has nothing to restore, but takes its time, and fails as often as it is told to."""

    def __init__(self):
        self.failures = []
        self.terms = []
        self.seconds = 0.0

    async def complete(self, controller):
        await asyncio.sleep(self.seconds)
        if self.failures:
            raise self.failures.pop()
        self.terms.append(controller.mod_revision)


class FlakyStore(BreakableStore):
    """Another store, whose commits can be made to fail or go unanswered, and whose news is late."""

    def __init__(self, store):
        super().__init__(store)
        self.refusing = 0
        self.losing_answers = 0
        self.commits = []
        self.late = set()
        """The prefixes of whose changes nothing is told for now."""

    async def watch(self, prefix, after_revision):
        async for events in super().watch(prefix, after_revision):
            while prefix in self.late:  # noqa: ASYNC110 - simulated time passes fast.
                await asyncio.sleep(0.01)
            yield events

    async def commit(self, compares, operations):
        if self.refusing:
            self.refusing -= 1
            raise StoreUnavailableError("refused")
        done = await self._store.commit(compares, operations)
        self.commits.append((compares, operations, done))
        if self.losing_answers:
            self.losing_answers -= 1
            raise StoreUnavailableError("no answer")
        return done


class Seat:
    """One broker: what it sees, and its readiness to be controller."""

    def __init__(self, store, broker_id, settings):
        self.store = FlakyStore(store)
        self.broker_id = broker_id
        self.view = ClusterView(self.store)
        self.catalog = Catalog(self.store)
        self.streams = Streams()
        self.reaper = Reaper()
        self.restorer = Restorer()
        self.controller = Controller(
            self.store,
            self.view,
            self.catalog,
            self.streams,
            self.reaper,
            restorer=self.restorer,
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            clock=virtual_time.clock_ms,
            random=Random(broker_id),
            settings=settings,
        )
        self.registration = None
        self.epoch = 0

    async def join(self, rack=""):
        """Begin a life, which nobody keeps alive: it lasts as long as its lease."""
        self.epoch += 1
        lease = await self.store.grant(TTL_MS)
        broker = BrokerInfo(
            id=self.broker_id, epoch=self.epoch, host="host", port=9092, rack=rack, lease=lease
        )
        self.registration = await self._put(broker)
        self.controller.begin(self.registration)

    async def drain(self):
        self.registration = await self._put(replace(self.registration, is_draining=True))

    async def leave(self):
        """End the life; everybody else sees it, and this broker's controller is told."""
        self.controller.end()
        await self.store.revoke(self.registration.lease)

    async def _put(self, broker):
        value = encode_broker(broker, virtual_time.clock_ms())
        done = await self.store.commit([], [Put(keys.broker(str(broker.id)), value, broker.lease)])
        return replace(broker, mod_revision=done.revision)


class Council:
    """Several seats over one store, and the eyes of somebody who sees all of it."""

    def __init__(self, settings):
        self.store = MemoryStore(virtual_time.clock_ms)
        self.settings = settings
        self.view = ClusterView(self.store)
        self.catalog = Catalog(self.store)
        self.seats = {}
        self._closing = AsyncExitStack()

    async def start(self):
        await self.view.start()
        await self.catalog.start()
        self._closing.push_async_callback(self.view.close)
        self._closing.push_async_callback(self.catalog.close)

    async def close(self):
        await self._closing.aclose()
        await self.store.close()

    async def seat(self, broker_id, rack=""):
        """Another broker comes, and lives until it leaves."""
        seat = self.seats[broker_id] = Seat(self.store, broker_id, self.settings)
        await seat.view.start()
        await seat.catalog.start()
        running = asyncio.create_task(seat.controller.run())
        beating = asyncio.create_task(self._keep_alive(seat))

        async def close():
            running.cancel()
            beating.cancel()
            await asyncio.wait([running, beating])
            await seat.view.close()
            await seat.catalog.close()

        self._closing.push_async_callback(close)
        await seat.join(rack)
        return seat

    async def _keep_alive(self, seat):
        while True:
            await asyncio.sleep(TTL_MS / 4000)
            if seat.registration is not None:
                await seat.store.keep_alive(seat.registration.lease)

    async def topic(self, name, partitions):
        number = len(self.catalog.topics) + len(self.catalog.deletions) + 1
        return await self.catalog.create(
            name, partitions, {}, virtual_time.clock_ms(), number.to_bytes(16)
        )

    # --- what can be seen -----------------------------------------------------------------------

    @property
    def controllers(self):
        return [number for number, seat in self.seats.items() if seat.controller.is_controller]

    @property
    def controller(self):
        [number] = self.controllers
        return self.seats[number]

    def owners(self, topic):
        """Who owns the partitions of a topic: ids by partition."""
        return {number: found.broker_id for number, found in self.view.assignments(topic).items()}

    def is_settled(self):
        """Whether everything belongs to somebody who lives, and nothing moves."""
        wanted = {topic.name: topic.partitions for topic in self.catalog.topics.values()}
        for topic, count in {**wanted, SHARDS_TOPIC: SHARD_COUNT}.items():
            found = self.view.assignments(topic)
            if found.keys() != set(range(count)):
                return False
            for assignment in found.values():
                owner = self.view.brokers.get(assignment.broker_id)
                if not assignment.is_of(owner) or assignment.reassigning_to is not None:
                    return False
        return True

    async def settled(self, seconds=5.0):
        """Wait for it; return how long it took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0.002)  # What was just done can be seen.
        while not (self.is_settled() and len(self.controllers) == 1):
            assert loop.time() - began < seconds, "not settled yet"
            await asyncio.sleep(0.001)
        return loop.time() - began

    async def levelled(self):
        """Hand over what is asked for until nothing is any more."""
        for _ in range(1000):
            if not await self.hand_over() and self.is_settled():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("it never ends")

    async def hand_over(self):
        """Be all the owners: hand over what is asked for, once; return how much that was."""
        moving = [
            found
            for topic in self.view.assigned_topics()
            for found in self.view.assignments(topic).values()
            if found.reassigning_to is not None
        ]
        for found in moving:
            target = self.view.brokers[found.reassigning_to]
            after = replace(
                found,
                broker_id=target.id,
                broker_epoch=target.epoch,
                reassigning_to=None,
                leader_epoch=found.leader_epoch + 1,
                fully_rolled=True,
            )
            key = keys.assignment(found.topic, found.partition)
            await self.store.commit(
                [Compare(key=key, mod_revision=found.mod_revision)],
                [Put(key, encode_assignment(after))],
            )
        return len(moving)


@asynccontextmanager
async def council(settings=None):
    made = Council(settings or ControllerSettings())
    await made.start()
    try:
        yield made
    finally:
        await made.close()


def play(body, **settings):
    """Run the body of a test, an async function of a council, in simulated time."""

    async def scenario(_random):
        async with council(ControllerSettings(**settings)) as made:
            await body(made)

    virtual_time.run(scenario, seed=0)
