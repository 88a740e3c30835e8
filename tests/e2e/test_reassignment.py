"""Kafka's tools place partitions on three brokers, while records are produced."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from e2e.recording_producer import (
    PARTITIONS,
    BackgroundProducer,
    check_acknowledged_records_are_stored_once,
)
from services import java, s3_server
from services.cluster import Cluster
from services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(300),  # The first run downloads the tools.
    pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server"),
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]

TOOLS = "org.apache.kafka.tools"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
LEASE_S = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    settings = {"broker_lease_ttl_ms": str(LEASE_S * 1000)}
    with Cluster(directory, brokers=3, etcd_members=1, seed=1, **settings) as running:
        running.wait_until_serving()
        yield running


def run(cluster: Cluster, tool: str, *arguments: str) -> str:
    return java.run(tool, "--bootstrap-server", cluster.bootstrap, *arguments)


def leaders(cluster: Cluster, topic: str) -> list[int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return [partitions[number].leader for number in sorted(partitions)]


def plan(directory: Path, topic: str, *replicas: list[int]) -> str:
    """A file with the replicas of each partition, for the tool."""
    partitions = [
        {"topic": topic, "partition": number, "replicas": each}
        for number, each in enumerate(replicas)
    ]
    file = directory / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(file)


def test_reassignment_loses_nothing_and_outlasts_a_failure(cluster, tmp_path):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(30)
    target = [[2, 3]] * (PARTITIONS // 2) + [[3, 1]] * (PARTITIONS // 2)
    reassignment = ("--reassignment-json-file", plan(tmp_path, "orders", *target))
    preferred = [replicas[0] for replicas in target]
    with BackgroundProducer(cluster, "orders") as stream:
        assert "Successfully started" in run(cluster, REASSIGN, "--execute", *reassignment)
        wait_until(lambda: leaders(cluster, "orders") == preferred, "new owners", seconds_max=60)
        verified = run(cluster, REASSIGN, "--verify", "--preserve-throttles", *reassignment)
        assert verified.count("is completed") == PARTITIONS
        assert "No partition reassignments found" in run(cluster, REASSIGN, "--list")
        cancelled = run(cluster, REASSIGN, "--cancel", "--preserve-throttles", *reassignment)
        assert "None of the specified partition reassignments are active" in cancelled
        stream.wait_for_more()
        assert stream.pause_s < LEASE_S, "partitions were transferred, and not taken over"
        cluster.nodes[2].kill()
        wait_until(
            lambda: set(leaders(cluster, "orders")) == {3}, "the next of the list", seconds_max=60
        )
        stream.wait_for_more()
        cluster.nodes[2].start()
        wait_until(lambda: leaders(cluster, "orders") == preferred, "the return", seconds_max=60)
        stream.wait_for_more()
    check_acknowledged_records_are_stored_once(cluster, stream)
    assert cluster.tracebacks() == []


def test_election_waits_for_the_preferred_leaders(cluster, tmp_path):
    election = (f"{TOOLS}.LeaderElectionCommand", "--election-type", "preferred")
    topics = f"{TOOLS}.TopicCommand"
    assigned = ("--topic", "assigned", "--replica-assignment")
    run(cluster, topics, "--create", *assigned, "1:2,2:3")
    assert leaders(cluster, "assigned") == [1, 2]
    run(cluster, topics, "--alter", "--partitions", "3", *assigned, "1:2,2:3,3:1")
    assert leaders(cluster, "assigned") == [1, 2, 3]
    cluster.nodes[1].terminate()
    wait_until(lambda: leaders(cluster, "assigned") == [2, 2, 3], "a stand-in", seconds_max=60)
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": "assigned", "partition": 1}]}))
    assert "Valid replica already elected for partitions assigned-1" in run(
        cluster, *election, "--path-to-json-file", str(file)
    )
    cluster.nodes[1].start()
    wait_until(lambda: cluster.nodes[1].is_serving, "the broker", seconds_max=60)
    run(cluster, *election, "--all-topic-partitions")
    assert leaders(cluster, "assigned") == [1, 2, 3]


def test_quorum_and_log_directories_are_described(cluster):
    quorum = f"{TOOLS}.MetadataQuorumCommand"
    status = dict(
        line.split(":", 1) for line in run(cluster, quorum, "describe", "--status").splitlines()
    )
    leader = int(status["LeaderId"])
    assert leader in {1, 2, 3}
    assert int(status["HighWatermark"]) > int(status["LeaderEpoch"]) > 0
    [voter] = json.loads(status["CurrentVoters"])
    assert voter["id"] == leader
    observers = {each["id"] for each in json.loads(status["CurrentObservers"])}
    assert observers == {1, 2, 3} - {leader}
    rows = run(cluster, quorum, "describe", "--replication").splitlines()[1:]
    assert sorted(row.split("\t")[-2].strip() for row in rows) == ["Leader", "Observer", "Observer"]
    printed = run(cluster, f"{TOOLS}.LogDirsCommand", "--describe")
    described = json.loads(printed.splitlines()[-1])
    directories = {
        broker["broker"]: [each["logDir"] for each in broker["logDirs"]]
        for broker in described["brokers"]
    }
    assert directories == {broker: ["s3://kafscale-test/default"] for broker in (1, 2, 3)}
