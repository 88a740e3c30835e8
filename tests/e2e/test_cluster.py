"""Three brokers with a real etcd and a real S3 server, as clients see them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from e2e.recording_producer import (
    PARTITIONS,
    BackgroundProducer,
    check_acknowledged_records_are_stored_once,
)
from services import s3_server
from services.broker import BrokerProcess
from services.cluster import Cluster
from services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server"),
]

LEASE_S = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    settings = {"broker_lease_ttl_ms": str(LEASE_S * 1000)}
    with Cluster(directory, brokers=3, etcd_members=3, seed=1, **settings) as running:
        running.wait_until_serving()
        yield running


def create(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)


def leaders(cluster: Cluster, topic: str) -> list[int]:
    """The leader of each partition, from the first broker that responds; empty without one."""
    # An existing client keeps its connection even if that broker is paused; a new client does not.
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        partitions = admin.list_topics(topic, timeout=2).topics[topic].partitions
    except KafkaException:
        return []
    return [partitions[number].leader for number in range(PARTITIONS)]


def test_leaders_are_spread_evenly(cluster):
    create(cluster, "spread")
    result = leaders(cluster, "spread")
    assert {broker: result.count(broker) for broker in (1, 2, 3)} == {1: 4, 2: 4, 3: 4}


@pytest.mark.long
def test_rolling_restart_under_load_is_transparent_to_producers(cluster):
    create(cluster, "rolling")
    with BackgroundProducer(cluster, "rolling") as stream:
        for node in cluster.nodes.values():
            node.terminate()
            stream.wait_for_more()
            node.start()
            wait_until(lambda node=node: node.is_serving, "the broker", seconds_max=60)
            stream.wait_for_more()
    assert stream.pause_s < LEASE_S, "no failover had to wait for a lease to expire"
    check_acknowledged_records_are_stored_once(cluster, stream)


def test_partitions_of_a_killed_broker_fail_over_and_return(cluster):
    create(cluster, "killed")
    with BackgroundProducer(cluster, "killed") as stream:
        cluster.nodes[1].kill()
        wait_until(
            lambda: set(leaders(cluster, "killed")) == {2, 3},
            "new leaders",
            seconds_max=LEASE_S + 20,
        )
        stream.wait_for_more()
        cluster.nodes[1].start()
        wait_until(lambda: 1 in leaders(cluster, "killed"), "its share of leaders", seconds_max=60)
        stream.wait_for_more()
    check_acknowledged_records_are_stored_once(cluster, stream)


@pytest.mark.long
def test_paused_broker_is_fenced_and_rejoins(cluster):
    create(cluster, "asleep")
    with BackgroundProducer(cluster, "asleep") as stream:
        cluster.nodes[2].pause()
        try:
            wait_until(
                lambda: set(leaders(cluster, "asleep")) == {1, 3},
                "new leaders",
                seconds_max=LEASE_S + 20,
            )
            stream.wait_for_more()
        finally:
            cluster.nodes[2].resume()
        wait_until(lambda: 2 in leaders(cluster, "asleep"), "its share of leaders", seconds_max=60)
        stream.wait_for_more()
    assert cluster.unexpected_exits == [], "the broker resigned without a restart of its process"
    check_acknowledged_records_are_stored_once(cluster, stream)


@pytest.mark.long
def test_loss_of_an_etcd_member_is_transparent_to_producers(cluster):
    create(cluster, "member")
    with BackgroundProducer(cluster, "member") as stream:
        member = cluster.etcd.members[0]
        member.kill()
        try:
            stream.wait_for_more(500)
            create(cluster, "while-a-member-is-away")
        finally:
            member.start()
        stream.wait_for_more()
    check_acknowledged_records_are_stored_once(cluster, stream)


@pytest.mark.long
def test_second_process_with_the_same_broker_id_does_not_disturb_the_first(cluster, tmp_path):
    create(cluster, "twins")
    first = BrokerProcess(tmp_path / "first", **new_broker_settings(cluster))
    with first, BackgroundProducer(cluster, "twins") as stream:
        second = BrokerProcess(tmp_path / "second", **new_broker_settings(cluster))
        assert second.launch().wait(60) == 1
        assert "broker id 9 is in use" in second.logged()
        stream.wait_for_more()
    check_acknowledged_records_are_stored_once(cluster, stream)


def new_broker_settings(cluster: Cluster) -> dict[str, str]:
    """The settings of a broker that is not in the cluster yet."""
    settings = cluster.nodes[1].broker.settings | {"broker_id": "9"}
    del settings["broker_advertised_port"]
    return settings


@pytest.mark.long
def test_group_lag_is_exported_for_partitions_of_all_brokers(cluster):
    create(cluster, "lagging")
    with BackgroundProducer(cluster, "lagging") as stream:
        stream.wait_for_more()
    check_acknowledged_records_are_stored_once(cluster, stream)

    def lags() -> dict[str, float]:
        return {
            sample.labels["partition"]: sample.value
            for node in cluster.nodes.values()
            for family in text_string_to_metric_families(node.broker.http("/metrics")[1])
            for sample in family.samples
            if sample.name == "kafscale_consumer_lag" and sample.labels["group"] == "check-lagging"
        }

    wait_until(lambda: len(lags()) == PARTITIONS, "the lag of all partitions", seconds_max=40)
    assert set(lags().values()) == {0.0}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"etcd_endpoints": "127.0.0.1:1"}, "etcd (127.0.0.1:1) cannot be reached"),
        ({"s3_endpoint": "http://127.0.0.1:1"}, "cannot be reached"),
    ],
)
def test_broker_fails_to_start_without_its_stores(
    cluster, tmp_path: Path, settings: dict[str, str], reason: str
):
    named = new_broker_settings(cluster) | {"startup_timeout_sec": "3"}
    broker = BrokerProcess(tmp_path / "lonely", **(named | settings))
    assert broker.launch().wait(60) == 1
    assert reason in broker.logged()
