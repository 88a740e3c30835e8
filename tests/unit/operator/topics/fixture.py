"""A cluster's metadata, an API server and responding brokers, in memory and virtual time."""

import asyncio
from contextlib import asynccontextmanager

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.config.sections.etcd import Etcd
from kafscale.control_plane.messages import BrokerStatusResponse, PartitionStatus
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import Assignment, BrokerInfo
from kafscale.metadata.store.base import Put
from kafscale.metadata.topics.store import TopicStore
from kafscale.operator.cluster.broker_status import BrokerStatusCollector
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.kube.api import CLUSTERS, TOPICS
from kafscale.operator.topics.reconciler import TopicReconciler
from services.authorized_kube import AuthorizedKube
from services.memory_kube import MemoryKube
from unit.operator.topics.resources import NAMESPACE, manifest

CLUSTER = "production"


class TopicFixture:
    """A topic reconciler with everything it depends on."""

    def __init__(self, random):
        self.kube = MemoryKube(virtual_time.clock_ms)
        self.operator_kube = AuthorizedKube(self.kube)
        self.store = MemoryStore(virtual_time.clock_ms)
        self.registry = MetadataRegistry(lambda _settings: self.store)
        self.status_requests = 0
        self.log_end_offsets = {}
        self.reconciler = TopicReconciler(
            self.operator_kube,
            self.registry,
            BrokerStatusCollector(self.broker_response, virtual_time.clock_ms),
            clock=virtual_time.clock_ms,
            new_id=lambda: random.randbytes(16),
        )
        self.api = TopicStore(self.store)
        """Topics as brokers read and change them for clients."""

    async def open(self):
        """Create a cluster, and open its etcd."""
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
        """Write a resource, as kubectl does; return what the API server stored."""
        return await self.kube.apply(manifest(name, **spec))

    async def reconcile(self, name="orders"):
        return await self.reconciler.reconcile(await self.body(name))

    async def finalize(self, name="orders"):
        return await self.reconciler.finalize(await self.body(name))

    async def body(self, name="orders"):
        return await self.kube.get(TOPICS, NAMESPACE, name)

    async def status(self, name="orders"):
        return (await self.body(name)).get("status", {})

    async def ready(self, name="orders"):
        """Status and reason of the condition Ready."""
        conditions = {each["type"]: each for each in (await self.status(name))["conditions"]}
        return conditions["Ready"]["status"], conditions["Ready"]["reason"]

    async def assign(self, broker_id, topic, *partitions):
        """Make a broker the leader of partitions."""
        broker = BrokerInfo(id=broker_id, epoch=1, host="a", port=9092, control_port=9093)
        await self.store.commit([], [Put(keys.broker(broker_id), encode_broker(broker, 0))])
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
        await wait_for_watches()

    async def broker_response(self, _metadata, broker):
        """The status of a broker, with the offsets in `log_end_offsets`."""
        self.status_requests += 1
        view = self.registry.get(NAMESPACE, CLUSTER).view
        return BrokerStatusResponse(
            broker_id=str(broker.id),
            ready=True,
            partitions=[
                PartitionStatus(topic=topic, partition=number, leader=True, log_end_offset=end)
                for (topic, number), end in self.log_end_offsets.items()
                if view.leader(topic, number)[0] == broker.id
            ],
        )

    def events(self):
        return [(each.name, each.reason) for each in self.kube.events]

    def status_writes(self):
        """The number of statuses written."""
        return sum(write.verb == "status" for write in self.kube.writes)


async def wait_for_watches():
    """Let watches deliver what has happened."""
    await asyncio.sleep(0.1)


@asynccontextmanager
async def open_fixture(random):
    fixture = TopicFixture(random)
    await fixture.api.start()
    try:
        yield fixture
    finally:
        await fixture.registry.close_all()
        await fixture.api.close()
        await fixture.store.close()


def run_test(body):
    """Run an async function of a fixture in virtual time."""

    async def scenario(random):
        async with open_fixture(random) as fixture:
            return await body(fixture)

    return virtual_time.run(scenario, seed=0)
