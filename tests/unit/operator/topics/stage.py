"""A cluster's metadata, an API server and brokers that answer, all in memory and simulated time."""

import asyncio
from contextlib import asynccontextmanager

from kafscale.config.sections.etcd import Etcd
from kafscale.control_plane.messages import BrokerStatusResponse, PartitionStatus
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import Assignment, BrokerInfo
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.memory import MemoryStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.operator.cluster.broker_status import Surveyor
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.kube.kinds import CLUSTERS, TOPICS
from kafscale.operator.topics.reconciler import TopicReconciler
from kafscale.testing import virtual_time
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import NAMESPACE, manifest

CLUSTER = "production"


class Stage:
    """Everything that a reconciler has to do with, and the reconciler."""

    def __init__(self, random):
        self.kube = MemoryKube(virtual_time.clock_ms)
        self.store = MemoryStore(virtual_time.clock_ms)
        self.registry = MetadataRegistry(lambda _settings: self.store)
        self.surveys = 0
        self.ends = {}
        self.reconciler = TopicReconciler(
            self.kube,
            self.registry,
            Surveyor(self.answer, virtual_time.clock_ms),
            clock=virtual_time.clock_ms,
            new_id=lambda: random.randbytes(16),
        )
        self.api = Catalog(self.store)
        """As brokers see and change topics, for clients."""

    async def open(self):
        """Let there be a cluster, and its etcd in use."""
        await self.make_cluster()
        await self.registry.open(NAMESPACE, CLUSTER, Etcd(endpoints=("etcd:2379",)), "objects")

    async def make_cluster(self, **metadata):
        await self.kube.apply(
            {
                "apiVersion": CLUSTERS.api_version,
                "kind": CLUSTERS.kind,
                "metadata": {"name": CLUSTER, "namespace": NAMESPACE, **metadata},
                "spec": {},
            }
        )

    async def apply(self, name="orders", **spec):
        """Write a resource, as with kubectl; what the API server has then."""
        return await self.kube.apply(manifest(name, **spec))

    async def reconcile(self, name="orders"):
        return await self.reconciler.reconcile(await self.body(name))

    async def let_go(self, name="orders"):
        return await self.reconciler.let_go(await self.body(name))

    async def body(self, name="orders"):
        return await self.kube.get(TOPICS, NAMESPACE, name)

    async def status(self, name="orders"):
        return (await self.body(name)).get("status", {})

    async def ready(self, name="orders"):
        """The condition Ready of a resource, in short."""
        conditions = {each["type"]: each for each in (await self.status(name))["conditions"]}
        return conditions["Ready"]["status"], conditions["Ready"]["reason"]

    async def lead(self, broker_id, topic, *partitions):
        """Let a broker lead partitions."""
        broker = BrokerInfo(id=broker_id, epoch=1, host="a", port=9092, control_port=9093)
        await self.store.commit([], [Put(keys.broker(str(broker_id)), encode_broker(broker, 0))])
        for partition in partitions:
            assignment = Assignment(
                topic=topic,
                partition=partition,
                broker_id=broker_id,
                broker_epoch=1,
                leader_epoch=1,
                fully_rolled=True,
            )
            key = keys.assignment(topic, partition)
            await self.store.commit([], [Put(key, encode_assignment(assignment))])
        await settled()

    async def answer(self, broker):
        """What a broker says: of partition p of topic t, that it ends where `ends[t, p]` is."""
        self.surveys += 1
        view = self.registry.get(NAMESPACE, CLUSTER).view
        return BrokerStatusResponse(
            broker_id=str(broker.id),
            ready=True,
            partitions=[
                PartitionStatus(topic=topic, partition=number, leader=True, log_end_offset=end)
                for (topic, number), end in self.ends.items()
                if view.leader(topic, number)[0] == broker.id
            ],
        )

    def told(self):
        return [(each.name, each.reason) for each in self.kube.told]

    def written(self):
        """How many statuses were written."""
        return sum(write.verb == "status" for write in self.kube.writes)


async def settled():
    """Give watches the time to tell what has happened."""
    await asyncio.sleep(0.1)


@asynccontextmanager
async def staged(random):
    stage = Stage(random)
    await stage.api.start()
    try:
        yield stage
    finally:
        await stage.registry.close_all()
        await stage.api.close()
        await stage.store.close()


def play(body):
    """Run the body of a test, an async function of a stage, in simulated time."""

    async def scenario(random):
        async with staged(random) as stage:
            return await body(stage)

    return virtual_time.run(scenario, seed=0)
