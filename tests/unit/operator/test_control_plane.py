"""Tests of the operator's control plane: samples and watches of many clusters, over a socket."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest

from doubles.memory_store import MemoryStore
from kafscale.config import Config
from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.operator import Operator
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import MetricsSample
from kafscale.control_plane.samples import ClusterSamples
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment, encode_broker
from kafscale.metadata.schema.model import Assignment, BrokerInfo
from kafscale.metadata.store.base import Put
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.control_plane import control_plane
from unit.broker.harness import run
from unit.control_plane.scripted_broker import next_events

BROKER = BrokerInfo(id=3, epoch=1, host="a", port=9092)
SETTINGS = Etcd(endpoints=("here:2379",))


class OperatorFixture:
    """An operator with clusters whose names are their ids."""

    def __init__(self, client, registry, samples):
        self.client = client
        self.registry = registry
        self.samples = samples
        self.stores = {}

    async def add(self, name):
        self.stores[name] = MemoryStore(lambda: 0)
        await self.stores[name].commit([], [Put(keys.CLUSTER_ID, name.encode())])
        await self.open(name)

    async def open(self, name, settings=SETTINGS):
        self.registry._open_store = lambda _: self.stores[name]
        await self.registry.open("default", name, settings, "objects")

    async def assign(self, name, topic, leader_epoch):
        assignment = Assignment(
            topic=topic,
            partition=0,
            broker_id=3,
            broker_epoch=1,
            leader_epoch=leader_epoch,
            fully_rolled=True,
        )
        puts = {
            keys.broker("3"): encode_broker(BROKER, 0),
            keys.assignment(topic, 0): encode_assignment(assignment),
        }
        await self.stores[name].commit([], [Put(key, value) for key, value in puts.items()])


@asynccontextmanager
async def open_fixture(*names):
    config = Config(operator=Operator(host="127.0.0.1", control_port=0))
    registry, samples = MetadataRegistry(), ClusterSamples(lambda: 0)
    async with control_plane(config, registry, samples) as port:
        async with ControlClient(f"127.0.0.1:{port}") as client:
            fixture = OperatorFixture(client, registry, samples)
            for name in names:
                await fixture.add(name)
            yield fixture
        await registry.close_all()


def test_samples_are_kept_for_each_cluster():
    async def sent(*cluster_ids):
        for number, cluster_id in enumerate(cluster_ids):
            yield MetricsSample(cluster_id=cluster_id, broker_id="3", timestamp_ms=number)

    async def scenario():
        async with open_fixture() as fixture:
            ack = await fixture.client.send_metrics(sent("red", "blue", "red"))
            assert ack.message == "3 samples accepted"
            assert [each.timestamp_ms for each in fixture.samples.fresh("red")] == [2]
            assert [each.timestamp_ms for each in fixture.samples.fresh("blue")] == [1]
            with pytest.raises(ControlError, match="must have a cluster_id"):
                await fixture.client.send_metrics(sent(""))

    run(scenario)


def test_watch_follows_one_cluster():
    async def scenario():
        async with open_fixture("red", "blue") as fixture:
            await fixture.assign("red", "orders", 7)
            await fixture.assign("blue", "payments", 1)
            async with aclosing(fixture.client.watch_assignments(cluster_id="red")) as events:
                assert await next_events(events, 1) == ["orders/0 assigned 3 @7"]
                await fixture.assign("blue", "payments", 2)
                await fixture.assign("red", "orders", 8)
                assert await next_events(events, 1) == ["orders/0 assigned 3 @8"]

    run(scenario)


def test_watch_ends_when_metadata_is_reopened_and_can_be_restarted():
    async def scenario():
        async with open_fixture("red") as fixture:
            await fixture.assign("red", "orders", 7)
            watch = fixture.client.watch_assignments
            async with aclosing(watch(cluster_id="red")) as events:
                await next_events(events, 1)
                before, after = fixture.stores["red"], MemoryStore(lambda: 0)
                for key in (keys.CLUSTER_ID, keys.broker("3"), keys.assignment("orders", 0)):
                    await after.commit([], [Put(key, (await before.get(key)).value)])
                fixture.stores["red"] = after
                await fixture.open("red", Etcd(endpoints=("there:2379",)))
                with pytest.raises(ControlError, match="the server is closing"):
                    await anext(events)
            async with aclosing(watch(cluster_id="red")) as events:
                assert await next_events(events, 1) == ["orders/0 assigned 3 @7"]

    run(scenario)


def test_missing_cluster_id_means_the_only_cluster():
    async def scenario():
        async with open_fixture("red") as fixture:
            await fixture.assign("red", "orders", 7)
            async with aclosing(fixture.client.watch_assignments()) as events:
                assert await next_events(events, 1) == ["orders/0 assigned 3 @7"]
            await fixture.add("blue")
            with pytest.raises(ControlError, match="a cluster id is required") as rejected:
                await anext(fixture.client.watch_assignments())
            assert rejected.value.status == "INVALID_ARGUMENT"

    run(scenario)


def test_unknown_cluster_is_a_retriable_error():
    async def scenario():
        async with open_fixture("red") as fixture:
            with pytest.raises(ControlError, match="green") as rejected:
                await anext(fixture.client.watch_assignments(cluster_id="green"))
            assert rejected.value.status == "UNAVAILABLE"

    run(scenario)


def test_broker_requests_are_not_implemented():
    async def scenario():
        async with open_fixture("red") as fixture:
            with pytest.raises(ControlError, match="ask a broker") as rejected:
                await fixture.client.status()
            assert rejected.value.status == "UNIMPLEMENTED"

    run(scenario)


def test_stopping_operator_ends_streams_with_an_error(caplog):
    async def scenario():
        received = asyncio.Event()

        class RecordingSamples(ClusterSamples):
            def take(self, sample):
                super().take(sample)
                received.set()

        async def samples():
            yield MetricsSample(cluster_id="red", broker_id="3")
            await asyncio.Event().wait()

        config = Config(operator=Operator(host="127.0.0.1", control_port=0))
        async with AsyncExitStack() as stack:
            async with control_plane(
                config, MetadataRegistry(), RecordingSamples(lambda: 0)
            ) as port:
                client = ControlClient(f"127.0.0.1:{port}")
                await stack.enter_async_context(client)
                sending = asyncio.ensure_future(client.send_metrics(samples()))
                await received.wait()
            with pytest.raises(ControlError, match="retry with the next leader"):
                await sending

    run(scenario)
    assert not caplog.records
