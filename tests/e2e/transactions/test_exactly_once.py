"""Consume, transform and produce exactly once, while clients and brokers are killed."""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

from e2e.transactions.numbered_records import create, fill
from services import s3_server
from services.cluster import Cluster
from services.committed_records import Values, read_values
from services.selection import long_except
from services.transform import LIBRARIES, Transform, missing
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(400)

DONE_S_MAX = 180


@pytest.fixture(params=long_except(LIBRARIES, ("librdkafka", "franz").__contains__))
def library(request):
    if lacking := missing(request.param):
        pytest.skip(f"no {lacking} here")
    return request.param


def wait_until_transformed(bootstrap: str, program: Transform, topic: str, sent: Values) -> None:
    """Wait until the group has committed the ends of all partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": program.group})
    partitions = [TopicPartition(topic, partition) for partition in sent]

    def is_done() -> bool:
        committed = consumer.committed(partitions, 30)
        return all(each.offset == len(sent[each.partition]) for each in committed)

    try:
        wait_until(is_done, "the end of the input", seconds_max=DONE_S_MAX, seen=program.logged)
    finally:
        consumer.close()


def check(bootstrap: str, program: Transform, sent: Values) -> None:
    """The output has each record once and in order; aborted ones are in the log, but not read."""
    assert read_values(bootstrap, "output") == sent
    written = read_values(bootstrap, "output", isolation="read_uncommitted")
    count = sum(len(values) for values in sent.values())
    assert sum(len(values) for values in written.values()) > count
    assert program.count("aborted") > 0


def test_output_is_exactly_once(library, start_server, tmp_path):
    """The client is killed, then the broker, within transactions."""
    server = start_server()
    create(server.address, "input", "output")
    sent = fill(server.address, "input")
    with Transform(library, server.address, "input", "output", tmp_path) as program:
        program.wait_for_commits(3)
        program.kill()
        program.wait_for_commits(3)
        server.kill()
        server.start()
        program.wait_for_commits(3)
        server.kill()
        program.kill()
        server.start()
        wait_until_transformed(server.address, program, "input", sent)
    assert program.starts > 2
    check(server.address, program, sent)


@pytest.mark.long
def test_two_programs_share_the_partitions(library, start_server, tmp_path):
    """One of them is killed, the other one continues with its partitions."""
    server = start_server()
    create(server.address, "input", "output")
    sent = fill(server.address, "input")
    other = Transform(library, server.address, "input", "output", tmp_path, name="other")
    with Transform(library, server.address, "input", "output", tmp_path) as program:
        program.wait_for_commits(2)
        with other:
            other.wait_for_commits(1)
            for each in (program, other, program):
                each.kill()
                time.sleep(3)
            wait_until_transformed(server.address, program, "input", sent)
    check(server.address, program, sent)


@pytest.mark.long
@pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server")
def test_output_is_exactly_once_in_a_cluster(library, tmp_path):
    """Three brokers on etcd and S3, each of which is killed, and the client, too."""
    with Cluster(
        tmp_path / "cluster",
        brokers=3,
        etcd_members=1,
        seed=1,
        broker_lease_ttl_ms="4000",
        group_initial_rebalance_delay_ms="0",
    ) as cluster:
        cluster.wait_until_serving()
        create(cluster.bootstrap, "input", "output")
        sent = fill(cluster.bootstrap, "input")
        with Transform(library, cluster.bootstrap, "input", "output", tmp_path) as program:
            for node in cluster.nodes.values():
                program.wait_for_commits(3)
                node.kill()
                program.wait_for_commits(2)
                node.start()
                wait_until(lambda node=node: node.is_serving, "the broker", seconds_max=60)
                program.kill()
            wait_until_transformed(cluster.bootstrap, program, "input", sent)
        check(cluster.bootstrap, program, sent)
        assert cluster.tracebacks() == []
