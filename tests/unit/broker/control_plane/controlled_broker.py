"""A cluster of two brokers as broker 1 sees it, and broker 1's controlled parts."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.control_plane.service import BrokerControlService, BrokerParts
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import Assignment, BrokerInfo
from kafscale.metadata.store.base import Put
from kafscale.metadata.topics.store import TopicStore
from kafscale.net.address import ANY_ADDRESS, Address
from kafscale.storage.segments.swap import SwapResult

ME = BrokerInfo(
    id=1, epoch=4, host="a", port=9092, rack="z", version="9", control_host="a", control_port=9095
)
OTHER = BrokerInfo(id=2, epoch=1, host="b", port=9092, is_draining=True)


def owned(topic, partition, broker=ME, *, leader_epoch=0, reassigning_to=None):
    return Assignment(
        topic=topic,
        partition=partition,
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        leader_epoch=leader_epoch,
        fully_rolled=True,
        reassigning_to=reassigning_to,
    )


def log(topic, partition, *, rolled=0, end=10):
    """A log, as far as the control plane uses it."""
    return SimpleNamespace(
        topic=topic,
        directory=topic,
        partition=partition,
        closed=False,
        start_offset=2,
        high_watermark=end - 1,
        end_offset=end,
        tail=SimpleNamespace(rolled_offset=rolled, unrolled_bytes=30),
        segments=SimpleNamespace(total_bytes=70),
    )


class Storage:
    """Logs that are rolled on request; `gate` blocks that, `failure` is raised."""

    def __init__(self, *logs):
        self.logs = self.wal = self.roll_scheduler = self
        self.logs_by_partition = {(each.topic, each.partition): each for each in logs}
        self.done = []
        self.gate = None
        self.failure = None

    def __iter__(self):
        return iter(list(self.logs_by_partition.values()))

    def get(self, topic, partition):
        return self.logs_by_partition.get((topic, partition))

    async def flush(self):
        if self.failure is not None:
            raise self.failure
        self.done.append("flush")

    async def roll(self, partition, reason):
        if self.gate is not None:
            await self.gate.wait()
        self.done.append(f"roll {partition.topic}/{partition.partition} {reason}")
        partition.tail.rolled_offset = partition.high_watermark

    async def swap(self, partition, staged_prefix, checksums):
        self.done.append(
            f"swap {partition.topic}/{partition.partition} {staged_prefix} {checksums}"
        )
        return SwapResult(
            start_offset=2,
            end_offset=9,
            count_before=4,
            count_after=1,
            bytes_before=400,
            bytes_after=100,
        )


class Drainer:
    def __init__(self):
        self.calls = []

    async def drain(self, partitions, deadline_seconds):
        self.calls.append((partitions, deadline_seconds))
        return {("orders", 1), ("orders", 0)}, [("__consumer_offsets", 3)]


class Controller:
    def __init__(self):
        self.is_controller = True
        self.count = 0

    async def rebalance(self):
        self.count += 1
        return 1


class Transactions:
    """The steps of transactions, whose results are as long as the requests."""

    def __init__(self):
        self.verifier = self

    async def write_markers(self, markers):
        return [0 for marker in markers for _ in marker.partitions]

    async def answer(self, request):
        return [int(request.verify_only) for _ in request.partitions]


class ControlledBroker:
    """Broker 1, which owns partitions 0 and 1 of orders, and shard 3."""

    def __init__(self, store):
        self.store = store
        self.cache = ClusterCache(store)
        self.topic_store = TopicStore(store)
        self.storage = Storage(log("orders", 0), log("orders", 1))
        self.drainer = Drainer()
        self.controller = Controller()
        self.transactions = Transactions()
        self.registration = SimpleNamespace(broker=ME)
        self.problems = {}
        self.now_ms = 1_000
        self.broker = BrokerControlService(
            BrokerParts(
                broker_id=ME.id,
                cluster_id="cluster",
                namespace="ns",
                cache=self.cache,
                topic_store=self.topic_store,
                storage=self.storage,
                swap=self.storage.swap,
                transactions=self.transactions,
                registration=self.registration,
                drainer=self.drainer,
                controller=self.controller,
                problems=lambda: self.problems,
                store_health=lambda: "healthy",
                idle_seconds=lambda: 12.5,
                metrics_address=Address(ANY_ADDRESS, 9093),
                clock=lambda: self.now_ms,
            )
        )

    async def put(self, *records):
        """Write brokers and assignments, and wait until the cache shows them."""
        puts = [
            Put(keys.broker(each.id), encode_broker(each, 0))
            if isinstance(each, BrokerInfo)
            else Put(keys.assignment(each.topic, each.partition), encode_assignment(each))
            for each in records
        ]
        done = await self.store.commit([], [*puts, Put(keys.CONTROLLER, b"1")])
        changed = asyncio.Event()
        self.cache.subscribe(changed.set)
        while self.cache.controller is None or self.cache.controller.mod_revision < done.revision:
            await changed.wait()
            changed.clear()


@asynccontextmanager
async def running_setup():
    store = MemoryStore(virtual_time.clock_ms)
    setup = ControlledBroker(store)
    await setup.topic_store.start()
    await setup.cache.start()
    await setup.topic_store.create("orders", 4, {}, 0, b"o" * 16)
    await setup.put(
        ME,
        OTHER,
        owned("orders", 0, leader_epoch=7),
        owned("orders", 1, reassigning_to=2),
        owned("orders", 2, OTHER, leader_epoch=3),
        owned("__consumer_offsets", 3),
        owned("__consumer_offsets", 4, OTHER),
    )
    try:
        yield setup
    finally:
        await setup.broker.close()
        await setup.cache.close()
        await setup.topic_store.close()
        await store.close()


def simulate(body):
    """Run the body of a test, an async function of a setup, in simulated time."""

    async def scenario(_random):
        async with running_setup() as setup:
            await body(setup)

    virtual_time.run(scenario, seed=0)
