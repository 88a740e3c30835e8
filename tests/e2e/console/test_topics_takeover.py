"""Topics of several brokers, before and after a takeover."""

import pytest
from confluent_kafka import Producer

from services import s3_server
from services.cluster import Cluster
from services.console import ConsoleProcess
from services.s3_server import broker_settings
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(180)

COUNT = 5


@pytest.fixture
def cluster(tmp_path):
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    settings = {"broker_lease_ttl_ms": "6000"}
    with Cluster(tmp_path / "cluster", brokers=2, etcd_members=1, seed=0, **settings) as running:
        running.wait_until_serving()
        yield running


@pytest.fixture
def console_client(tmp_path, cluster):
    settings = broker_settings(cluster.s3.bucket) | {
        "bootstrap_servers": cluster.bootstrap,
        "control_servers": ",".join(node.broker.control_address for node in cluster.nodes.values()),
    }
    with ConsoleProcess(tmp_path / "console", **settings) as console:
        yield console.client()


@pytest.mark.long
def test_partitions_of_a_killed_broker_move_to_its_successor(cluster, console_client, topic):
    """Records that were only in the WAL of the killed broker still count as WAL tail."""
    assert (
        console_client.post("/topics", {"name": topic, "partitionCount": 4})["partitionCount"] == 4
    )
    assert console_client.get("/topics", search=topic)["total"] == 1
    wait_until(lambda: leaders(console_client, topic) == {1, 2}, "both brokers to lead some")
    produce(cluster, topic)
    before = partitions(console_client, topic)
    assert [each["highWatermark"] for each in before] == [COUNT] * 4
    assert {each["state"] for each in before} == {"online"}
    moved = next(each["partition"] for each in before if each["leader"] == 2)

    cluster.nodes[2].kill()
    wait_until(
        lambda: (
            [each["highWatermark"] for each in partitions(console_client, topic)] == [COUNT] * 4
            and leaders(console_client, topic) == {1}
        ),
        "the other to serve all of them",
        seen=lambda: partitions(console_client, topic),
    )
    value = console_client.get(f"/topics/{topic}/segments", partition=moved)
    held = value["wal"]["recordCount"] + sum(
        each["lastOffset"] + 1 - each["baseOffset"] for each in value["items"]
    )
    assert held == COUNT
    assert value["wal"]["objectCount"] >= 1 or value["total"] == 1

    flushed = console_client.post(f"/topics/{topic}/flush", {})
    assert [each["partition"] for each in flushed["partitions"]] == [0, 1, 2, 3]
    (segment,) = console_client.get(f"/topics/{topic}/segments", partition=moved)["items"]
    assert (segment["baseOffset"], segment["lastOffset"]) == (0, COUNT - 1)
    console_client.delete(f"/topics/{topic}", {"confirm": topic})
    assert console_client.request("GET", f"/topics/{topic}").status == 404


def partitions(console_client, topic):
    return console_client.get(f"/topics/{topic}")["partitions"]


def leaders(console_client, topic):
    return {each["leader"] for each in partitions(console_client, topic)}


def produce(cluster, topic):
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for partition in range(4):
        for number in range(COUNT):
            producer.produce(topic, f"value {number}".encode(), partition=partition)
    assert producer.flush(60) == 0
