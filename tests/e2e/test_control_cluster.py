"""The control plane of two brokers that share a bucket and an etcd."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import Partition
from services import s3_server
from services.cluster import Cluster
from services.shell import Shell
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    with Cluster(tmp_path / "cluster", brokers=2, etcd_members=1, seed=0) as running:
        running.wait_until_serving()
        yield running
        assert not running.tracebacks()


def control(cluster, broker_id):
    return cluster.nodes[broker_id].broker.control_address


@pytest.fixture
def kafscale(cluster):
    return Shell(cluster.bootstrap, control_servers=control(cluster, 1))


def call(address, operation):
    async def run():
        async with ControlClient(address) as client:
            return await operation(client)

    return asyncio.run(run())


def owners(kafscale):
    """The broker of each partition of the topic `orders`."""
    status = json.loads(kafscale("cluster", "status", "-p", "-o", "json"))
    return {
        each["partition"]: each["broker"]
        for each in status["partitions"]
        if each["topic"] == "orders" and each["state"] == "online"
    }


def test_drain_moves_partitions_and_loses_no_records(cluster, kafscale):
    kafscale("topic", "create", "orders", "-p", "6")
    wait_until(lambda: len(owners(kafscale)) == 6, "all partitions to be served")
    assert Counter(owners(kafscale).values()) == {1: 3, 2: 3}
    kafscale.produce("orders", lines=map(str, range(100)))

    of_two = next(number for number, broker in owners(kafscale).items() if broker == 2)
    with pytest.raises(ControlError, match="broker 2 is") as refused:
        call(control(cluster, 1), lambda client: client.seal_tail(Partition("orders", of_two)))
    assert refused.value.status == "FAILED_PRECONDITION"
    flushed = json.loads(kafscale("cluster", "flush", "-t", "orders", "-o", "json"))
    assert {each["partition"]: each["broker"] for each in flushed} == owners(kafscale)

    async def drain_and_watch(client):
        released = set()
        async with aclosing(client.watch_assignments("2")) as events:
            loop = asyncio.get_running_loop()
            drained = loop.run_in_executor(
                None, kafscale, "cluster", "drain", "2", "--deadline", "60", "-o", "json"
            )
            while len(released) < 28:  # Its three partitions and half of the shards.
                event = await anext(events)
                if event.status == "released":
                    released.add(Partition.of(event.partition))
            return released, json.loads(await drained)

    released, drained = call(control(cluster, 1), drain_and_watch)
    assert not drained["pending"]
    assert {(each["topic"], each["partition"]) for each in drained["drained"]} == released
    wait_until(lambda: set(owners(kafscale).values()) == {1}, "broker 1 to serve everything")
    assert sorted(map(int, kafscale("consume", "orders", "-e").split())) == list(range(100))
    status = json.loads(kafscale("cluster", "status", "-o", "json"))
    assert [each["state"] for each in status["brokers"]] == ["ready", "draining"]

    # A restarted broker gets its share again.
    cluster.nodes[2].terminate()
    cluster.nodes[2].start()
    cluster.wait_until_serving()
    wait_until(lambda: Counter(owners(kafscale).values()) == {1: 3, 2: 3}, "an even share")
    assert kafscale("cluster", "rebalance").endswith("no partition moves\n")
    assert sorted(map(int, kafscale("consume", "orders", "-e").split())) == list(range(100))
