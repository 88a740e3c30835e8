"""Tests of the operator's control plane: samples and watches of many clusters, over TLS."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from doubles.memory_store import MemoryStore
from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.operator import Operator
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError, UnreachableError
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
from unit.operator.issued_certificates import PLATFORM, IssuedCertificates

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
            keys.broker(3): encode_broker(BROKER, 0),
            keys.assignment(topic, 0): encode_assignment(assignment),
        }
        await self.stores[name].commit([], [Put(key, value) for key, value in puts.items()])


@asynccontextmanager
async def serving(registry, samples):
    """The operator's control plane: its address, and its certificates."""
    settings = Operator(host="127.0.0.1", control_port=0)
    with TemporaryDirectory() as directory:
        certificates = IssuedCertificates(Path(directory))
        await certificates.issuer.renew()
        async with control_plane(
            settings, PLATFORM, registry, samples, certificates.issuer.files
        ) as port:
            yield f"127.0.0.1:{port}", certificates


@asynccontextmanager
async def open_fixture(*names):
    """An operator with these clusters, and a client with the certificate of the first one."""
    registry, samples = MetadataRegistry(), ClusterSamples(lambda: 0)
    async with serving(registry, samples) as (address, certificates):
        tls = await certificates.of_brokers(names[0])
        async with ControlClient(address, tls) as client:
            fixture = OperatorFixture(client, registry, samples)
            for name in names:
                await fixture.add(name)
            yield fixture
        await registry.close_all()


async def sent(*cluster_ids):
    for number, cluster_id in enumerate(cluster_ids):
        yield MetricsSample(cluster_id=cluster_id, broker_id="3", timestamp_ms=number)


def test_newest_sample_of_the_own_cluster_is_kept():
    async def scenario():
        async with open_fixture("red") as fixture:
            ack = await fixture.client.send_metrics(sent("red", "red", "red"))
            assert ack.message == "3 samples accepted"
            assert [each.timestamp_ms for each in fixture.samples.fresh("red")] == [2]
            with pytest.raises(ControlError, match="must have a cluster_id"):
                await fixture.client.send_metrics(sent(""))

    run(scenario)


def test_other_cluster_can_neither_be_read_nor_reported_on():
    async def scenario():
        async with open_fixture("red", "blue") as fixture:
            await fixture.assign("blue", "payments", 1)
            for attempt in (
                fixture.client.send_metrics(sent("red", "blue")),
                anext(fixture.client.watch_assignments(cluster_id="blue")),
            ):
                with pytest.raises(ControlError, match="not one of cluster default/blue") as denied:
                    await attempt
                assert denied.value.status == "PERMISSION_DENIED"
            assert fixture.samples.fresh("blue") == []

    run(scenario)


def test_client_without_a_certificate_is_rejected():
    async def scenario():
        async with AsyncExitStack() as stack:
            address, _ = await stack.enter_async_context(
                serving(MetadataRegistry(), ClusterSamples(lambda: 0))
            )
            client = await stack.enter_async_context(ControlClient(address))
            with pytest.raises(UnreachableError):
                await client.send_metrics(sent("red"))

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
                for key in (keys.CLUSTER_ID, keys.broker(3), keys.assignment("orders", 0)):
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

        async with AsyncExitStack() as stack:
            registry = MetadataRegistry()
            async with serving(registry, RecordingSamples(lambda: 0)) as (address, certificates):
                client = ControlClient(address, await certificates.of_brokers("red"))
                await stack.enter_async_context(client)
                await OperatorFixture(client, registry, None).add("red")
                sending = asyncio.ensure_future(client.send_metrics(samples()))
                await received.wait()
            await registry.close_all()
            with pytest.raises(ControlError, match="retry with the next leader"):
                await sending

    run(scenario)
    assert not caplog.records
