"""Static members: whoever comes back under its name in time was never away.

In a classic group a second one under the same name takes the place of the first; in a group of the
new protocol the first keeps it.
"""

import pytest

from services.group_member import Client
from services.group_state import describe_group_state
from services.waiting import wait_until

from .clients import clients
from .conftest import PARTITIONS, ends_of, fill

pytestmark = pytest.mark.timeout(120)

CLASSIC = [
    Client("librdkafka", "range"),
    Client("librdkafka", "cooperative-sticky"),
    Client("kafka_python", "range"),
    Client("java", "range"),
]
NEW = [Client("librdkafka", "consumer"), Client("java", "consumer")]


@clients(CLASSIC + NEW)
def test_a_member_that_restarts_in_time_finds_its_partitions(
    start_server, create_group, topic, client
):
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
    consumers.wait_until_caught_up(ends_of(server, topic))
    after = describe_group_state(server.port, consumers.group, is_classic=is_classic)
    assert (after.state, after.generation) == (before.state, before.generation)
    assert len(after.members) == 2
    assert consumers.count_moved() == 0
    assert two.is_running


@clients([client for client in CLASSIC if client.library != "java"])
def test_a_second_member_of_the_same_name_fences_the_first(server, create_group, topic, client):
    consumers = create_group(server, client)
    (first,) = consumers.start_members(instance_id="one")
    consumers.wait_until_stable()
    (second,) = consumers.start_members(instance_id="one")
    wait_until(lambda: second.owned == set(range(PARTITIONS)), "an assignment", seen=consumers)
    fill(server, topic, [b"something to commit"])
    wait_until(lambda: not first.is_running, "the end of the first", seen=consumers)
    assert "same group.instance.id" in first.failures[-1]
    consumers.wait_until_caught_up(ends_of(server, topic))
    assert len(describe_group_state(server.port, consumers.group, is_classic=True).members) == 1


def test_in_the_new_protocol_a_second_member_of_the_same_name_is_turned_away(server, create_group):
    consumers = create_group(server, Client("librdkafka", "consumer"))
    (first,) = consumers.start_members(instance_id="one")
    consumers.wait_until_stable()
    (second,) = consumers.start_members(instance_id="one")
    wait_until(lambda: not second.is_running, "the end of the second", seen=consumers)
    assert "still used by another member" in second.failures[-1]
    assert first.is_running
    assert first.owned == set(range(PARTITIONS))
