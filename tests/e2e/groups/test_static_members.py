"""Static members: a member that returns with its instance id in time keeps its partitions.

In a classic group, a second member with the same instance id fences the first; with the consumer
protocol, the first one stays.
"""

import pytest

from services.group_member import Client
from services.group_state import describe_group_state
from services.waiting import wait_until

from .clients import clients
from .conftest import PARTITIONS, end_offsets, fill

pytestmark = pytest.mark.timeout(120)

CLASSIC = [
    Client("librdkafka", "range"),
    Client("librdkafka", "cooperative-sticky"),
    Client("kafka_python", "range"),
    Client("java", "range"),
]
CONSUMER_PROTOCOL = [Client("librdkafka", "consumer"), Client("java", "consumer")]


@clients(CLASSIC + CONSUMER_PROTOCOL)
def test_restarted_static_member_keeps_its_partitions(start_server, create_group, topic, client):
    server = start_server()
    consumers = create_group(server, client, session_timeout_ms=30_000)
    is_classic = client in CLASSIC
    (one,) = consumers.start_members(instance_id="one")
    (two,) = consumers.start_members(instance_id="two")
    consumers.wait_until_stable()
    consumers.reset_moved_count()
    owned = one.owned
    before = describe_group_state(server.port, consumers.group, is_classic=is_classic)

    one.leave()
    for partition in range(PARTITIONS):
        fill(server, topic, [b"meanwhile"] * 5, partition)
    (again,) = consumers.start_members(instance_id="one")
    wait_until(lambda: again.owned == owned, f"{owned}", seen=consumers)
    consumers.wait_until_caught_up(end_offsets(server, topic))
    after = describe_group_state(server.port, consumers.group, is_classic=is_classic)
    assert (after.state, after.generation) == (before.state, before.generation)
    assert len(after.members) == 2
    assert consumers.count_moved() == 0
    assert two.is_running


@clients([client for client in CLASSIC if client.library != "java"])
def test_duplicate_instance_id_fences_the_first_classic_member(server, create_group, topic, client):
    consumers = create_group(server, client)
    (first,) = consumers.start_members(instance_id="one")
    consumers.wait_until_stable()
    (second,) = consumers.start_members(instance_id="one")
    wait_until(lambda: second.owned == set(range(PARTITIONS)), "an assignment", seen=consumers)
    fill(server, topic, [b"something to commit"])
    wait_until(lambda: not first.is_running, "the first member to exit", seen=consumers)
    assert "same group.instance.id" in first.failures[-1]
    consumers.wait_until_caught_up(end_offsets(server, topic))
    assert len(describe_group_state(server.port, consumers.group, is_classic=True).members) == 1


def test_duplicate_instance_id_is_rejected_by_the_consumer_protocol(server, create_group):
    consumers = create_group(server, Client("librdkafka", "consumer"))
    (first,) = consumers.start_members(instance_id="one")
    consumers.wait_until_stable()
    (second,) = consumers.start_members(instance_id="one")
    wait_until(lambda: not second.is_running, "the second member to exit", seen=consumers)
    assert "still used by another member" in second.failures[-1]
    assert first.is_running
    assert first.owned == set(range(PARTITIONS))
