"""Controller candidates over one metadata store: they own partitions, but serve nothing."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from msgspec.structs import replace

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.cluster.controller.controller import Controller, ControllerSettings
from kafscale.errors import StoreUnavailableError
from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, BrokerInfo
from kafscale.metadata.store.base import Compare, Put
from kafscale.metadata.topics.store import TopicStore
from kafscale.storage.wal.dead_stream_cleaner import CleanupResult
from unit.metadata.interruptible_store import InterruptibleStore

TTL_MS = 10_000
CLUSTER_ID = "cluster-of-tests"


class Streams:
    """Records which streams were fenced, and fails for the configured brokers."""

    def __init__(self):
        self.fences = []
        self.failing = set()
        self.seconds = 0.0

    async def fence(self, broker_id, epoch):
        await asyncio.sleep(self.seconds)
        if broker_id in self.failing:
            raise StoreUnavailableError("not now")
        self.fences.append((broker_id, epoch))


class StreamCleaner:
    """Records its calls, and asks for the configured topics and sessions."""

    def __init__(self):
        self.rounds = []
        self.topic_ids = []
        self.sessions = []
        self.oldest_records_ms = None

    async def clean(self, find_rolled_ends, find_session):
        ends = await find_rolled_ends(self.topic_ids)
        self.rounds.append((ends, {each: find_session(*each) for each in self.sessions}))
        return CleanupResult(
            unknown_topics=set(self.topic_ids).difference(ends),
            oldest_records_ms=self.oldest_records_ms,
        )


class Restorer:
    """Has nothing to restore, but takes the configured time, and fails as configured."""

    def __init__(self):
        self.failures = []
        self.terms = []
        self.seconds = 0.0

    async def complete(self, controller):
        await asyncio.sleep(self.seconds)
        if self.failures:
            raise self.failures.pop()
        self.terms.append(controller.mod_revision)


class FlakyStore(InterruptibleStore):
    """A store whose commits can fail or lose their responses, and whose watches can be late."""

    def __init__(self, store):
        super().__init__(store)
        self.refusing = 0
        self.losing_responses = 0
        self.commits = []
        self.late = set()
        """Prefixes whose watch events are withheld for now."""

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
        if self.losing_responses:
            self.losing_responses -= 1
            raise StoreUnavailableError("response lost")
        return done


class ControllerNode:
    """One broker: its caches, and its controller."""

    def __init__(self, store, broker_id, settings):
        self.store = FlakyStore(store)
        self.broker_id = broker_id
        self.cache = ClusterCache(self.store)
        self.topic_store = TopicStore(self.store)
        self.streams = Streams()
        self.cleaner = StreamCleaner()
        self.restorer = Restorer()
        self.controller = Controller(
            self.store,
            self.cache,
            self.topic_store,
            self.streams,
            self.cleaner,
            restorer=self.restorer,
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            clock=virtual_time.clock_ms,
            random=Random(broker_id),
            settings=settings,
        )
        self.broker = None
        self.epoch = 0

    async def join(self, rack=""):
        """Start a broker session; its lease is not renewed here."""
        self.epoch += 1
        lease = await self.store.grant(TTL_MS)
        broker = BrokerInfo(
            id=self.broker_id, epoch=self.epoch, host="host", port=9092, rack=rack, lease=lease
        )
        self.broker = await self._put(broker)
        counter = id_allocator.broker_epoch_counter(str(self.broker_id))
        await id_allocator.advance_to(self.store, counter, self.epoch + 1)
        self.controller.start_session(self.broker)

    async def drain(self):
        self.broker = await self._put(replace(self.broker, is_draining=True))

    async def leave(self):
        """End the session: revoke its lease, and stop its controller."""
        self.controller.end_session()
        await self.store.revoke(self.broker.lease)

    async def _put(self, broker):
        value = encode_broker(broker, virtual_time.clock_ms())
        done = await self.store.commit([], [Put(keys.broker(broker.id), value, broker.lease)])
        return replace(broker, mod_revision=done.revision)


class ControllerCluster:
    """Several nodes over one store, with caches that observe it."""

    def __init__(self, settings):
        self.store = MemoryStore(virtual_time.clock_ms)
        self.settings = settings
        self.cache = ClusterCache(self.store)
        self.topic_store = TopicStore(self.store)
        self.nodes = {}
        self._closing = AsyncExitStack()

    async def start(self):
        await self.cache.start()
        await self.topic_store.start()
        self._closing.push_async_callback(self.cache.close)
        self._closing.push_async_callback(self.topic_store.close)

    async def close(self):
        await self._closing.aclose()
        await self.store.close()

    async def node(self, broker_id, rack=""):
        """Add a broker; its lease is renewed until it leaves."""
        node = self.nodes[broker_id] = ControllerNode(self.store, broker_id, self.settings)
        await node.cache.start()
        await node.topic_store.start()
        running = asyncio.create_task(node.controller.run())
        beating = asyncio.create_task(self._keep_alive(node))

        async def close():
            running.cancel()
            beating.cancel()
            await asyncio.wait([running, beating])
            await node.cache.close()
            await node.topic_store.close()

        self._closing.push_async_callback(close)
        await node.join(rack)
        return node

    async def _keep_alive(self, node):
        while True:
            await asyncio.sleep(TTL_MS / 4000)
            if node.broker is not None:
                await node.store.keep_alive(node.broker.lease)

    async def topic(self, name, partitions):
        store = self.topic_store
        number = len(store.topics) + len(store.deletions) + len(store.retired) + 1
        return await self.topic_store.create(
            name, partitions, {}, virtual_time.clock_ms(), number.to_bytes(16)
        )

    # --- observations ---------------------------------------------------------------------------

    @property
    def controllers(self):
        return [number for number, node in self.nodes.items() if node.controller.is_controller]

    @property
    def controller(self):
        [number] = self.controllers
        return self.nodes[number]

    def owners(self, topic):
        """The owners of the partitions of a topic: broker ids by partition."""
        return {
            number: result.broker_id for number, result in self.cache.assignments(topic).items()
        }

    def is_assigned(self):
        """Whether everything is owned by a live broker, and nothing moves."""
        desired = {topic.name: topic.partitions for topic in self.topic_store.topics.values()}
        for topic, count in {**desired, SHARDS_TOPIC: SHARD_COUNT}.items():
            result = self.cache.assignments(topic)
            if result.keys() != set(range(count)):
                return False
            for assignment in result.values():
                owner = self.cache.brokers.get(assignment.broker_id)
                if not assignment.is_owned_by(owner) or assignment.reassigning_to is not None:
                    return False
        return True

    async def wait_until_assigned(self, seconds=5.0):
        """Wait until everything is assigned; return how long it took."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0.002)  # The caches show what was just done.
        while not (self.is_assigned() and len(self.controllers) == 1):
            assert loop.time() - began < seconds, "not assigned yet"
            await asyncio.sleep(0.001)
        return loop.time() - began

    async def wait_until_balanced(self):
        """Transfer partitions as requested until nothing moves any more."""
        for _ in range(1000):
            if not await self.transfer_all() and self.is_assigned():
                return
            await asyncio.sleep(0.05)
        raise AssertionError("moves never end")

    async def transfer_all(self):
        """Act for all owners: execute all requested transfers once; return their number."""
        moving = [
            result
            for topic in self.cache.assigned_topics()
            for result in self.cache.assignments(topic).values()
            if result.reassigning_to is not None
        ]
        for result in moving:
            target = self.cache.brokers[result.reassigning_to]
            after = replace(
                result,
                broker_id=target.id,
                broker_epoch=target.epoch,
                reassigning_to=None,
                leader_epoch=result.leader_epoch + 1,
                fully_rolled=True,
            )
            key = keys.assignment(result.topic, result.partition)
            await self.store.commit(
                [Compare(key=key, mod_revision=result.mod_revision)],
                [Put(key, encode_assignment(after))],
            )
        return len(moving)


@asynccontextmanager
async def running_cluster(settings=None):
    cluster = ControllerCluster(settings or ControllerSettings())
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


def simulate(body, **settings):
    """Run the body of a test, an async function of a cluster, in simulated time."""

    async def scenario(_random):
        async with running_cluster(ControllerSettings(**settings)) as cluster:
            await body(cluster)

    virtual_time.run(scenario, seed=0)
