"""The operator's control plane: samples and watches of many clusters, over a real socket."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest

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
from kafscale.metadata.store.memory import MemoryStore
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.control_plane import control_plane
from unit.broker.harness import run
from unit.control_plane.stage import take

BROKER = BrokerInfo(id=3, epoch=1, host="a", port=9092)
SETTINGS = Etcd(endpoints=("here:2379",))


class Stage:
    """An operator that looks after clusters called as their ids are."""

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
async def staged(*names):
    config = Config(operator=Operator(host="127.0.0.1", control_port=0))
    registry, samples = MetadataRegistry(), ClusterSamples(lambda: 0)
    async with control_plane(config, registry, samples) as port:
        async with ControlClient(f"127.0.0.1:{port}") as client:
            stage = Stage(client, registry, samples)
            for name in names:
                await stage.add(name)
            yield stage
        await registry.close_all()


def test_samples_are_kept_for_each_cluster():
    async def sent(*cluster_ids):
        for number, cluster_id in enumerate(cluster_ids):
            yield MetricsSample(cluster_id=cluster_id, broker_id="3", timestamp_ms=number)

    async def story():
        async with staged() as stage:
            ack = await stage.client.send_metrics(sent("red", "blue", "red"))
            assert ack.message == "3 samples taken"
            assert [each.timestamp_ms for each in stage.samples.fresh("red")] == [2]
            assert [each.timestamp_ms for each in stage.samples.fresh("blue")] == [1]
            with pytest.raises(ControlError, match="of which cluster"):
                await stage.client.send_metrics(sent(""))

    run(story)


def test_a_watch_is_of_one_cluster_and_goes_on():
    async def story():
        async with staged("red", "blue") as stage:
            await stage.assign("red", "orders", 7)
            await stage.assign("blue", "payments", 1)
            async with aclosing(stage.client.watch_assignments(cluster_id="red")) as events:
                assert await take(events, 1) == ["orders/0 assigned 3 @7"]
                await stage.assign("blue", "payments", 2)
                await stage.assign("red", "orders", 8)
                assert await take(events, 1) == ["orders/0 assigned 3 @8"]

    run(story)


def test_a_watch_ends_when_the_metadata_are_opened_anew_and_may_begin_again():
    async def story():
        async with staged("red") as stage:
            await stage.assign("red", "orders", 7)
            watch = stage.client.watch_assignments
            async with aclosing(watch(cluster_id="red")) as events:
                await take(events, 1)
                before, after = stage.stores["red"], MemoryStore(lambda: 0)
                for key in (keys.CLUSTER_ID, keys.broker("3"), keys.assignment("orders", 0)):
                    await after.commit([], [Put(key, (await before.get(key)).value)])
                stage.stores["red"] = after
                await stage.open("red", Etcd(endpoints=("there:2379",)))
                with pytest.raises(ControlError, match="ask another one, or again"):
                    await anext(events)
            async with aclosing(watch(cluster_id="red")) as events:
                assert await take(events, 1) == ["orders/0 assigned 3 @7"]

    run(story)


def test_who_does_not_say_which_cluster_means_the_only_one():
    async def story():
        async with staged("red") as stage:
            await stage.assign("red", "orders", 7)
            async with aclosing(stage.client.watch_assignments()) as events:
                assert await take(events, 1) == ["orders/0 assigned 3 @7"]
            await stage.add("blue")
            with pytest.raises(ControlError, match="of which cluster") as refused:
                await anext(stage.client.watch_assignments())
            assert refused.value.status == "INVALID_ARGUMENT"

    run(story)


def test_a_cluster_that_nobody_knows_may_be_known_later():
    async def story():
        async with staged("red") as stage:
            with pytest.raises(ControlError, match="green") as refused:
                await anext(stage.client.watch_assignments(cluster_id="green"))
            assert refused.value.status == "UNAVAILABLE"

    run(story)


def test_what_only_a_broker_can_do_is_refused():
    async def story():
        async with staged("red") as stage:
            with pytest.raises(ControlError, match="ask a broker") as refused:
                await stage.client.status()
            assert refused.value.status == "UNIMPLEMENTED"

    run(story)


def test_who_is_sending_is_told_when_the_operator_stops(caplog):
    async def story():
        came = asyncio.Event()

        class Taking(ClusterSamples):
            def take(self, sample):
                super().take(sample)
                came.set()

        async def samples():
            yield MetricsSample(cluster_id="red", broker_id="3")
            await asyncio.Event().wait()

        config = Config(operator=Operator(host="127.0.0.1", control_port=0))
        async with AsyncExitStack() as stack:
            async with control_plane(config, MetadataRegistry(), Taking(lambda: 0)) as port:
                client = ControlClient(f"127.0.0.1:{port}")
                await stack.enter_async_context(client)
                sending = asyncio.ensure_future(client.send_metrics(samples()))
                await came.wait()
            with pytest.raises(ControlError, match="another one leads soon"):
                await sending

    run(story)
    assert not caplog.records
