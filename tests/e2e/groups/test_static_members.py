"""Static members: whoever comes back under its name in time was never away.

In a classic group a second one under the same name takes the place of the first; in a group of the
new protocol the first keeps it.
"""

import pytest

from services.group_member import Client
from services.group_wire import standing
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
def test_a_member_that_restarts_in_time_finds_its_partitions(start_server, recruit, topic, client):
    server = start_server()
    crew = recruit(server, client, session_timeout_ms=30_000)
    is_classic = client in CLASSIC
    (one,) = crew.hire(instance_id="one")
    (two,) = crew.hire(instance_id="two")
    crew.settle()
    crew.mark()
    owned = one.owned
    before = standing(server.port, crew.group, is_classic=is_classic)

    one.leave()
    for partition in range(PARTITIONS):
        fill(server, topic, [b"meanwhile"] * 5, partition)
    (again,) = crew.hire(instance_id="one")
    wait_until(lambda: again.owned == owned, f"{owned}", seen=crew)
    crew.catch_up(ends_of(server, topic))
    after = standing(server.port, crew.group, is_classic=is_classic)
    assert (after.state, after.generation) == (before.state, before.generation)
    assert len(after.members) == 2
    assert crew.moved() == 0
    assert two.is_running


@clients([client for client in CLASSIC if client.library != "java"])
def test_a_second_member_of_the_same_name_fences_the_first(server, recruit, topic, client):
    crew = recruit(server, client)
    (first,) = crew.hire(instance_id="one")
    crew.settle()
    (second,) = crew.hire(instance_id="one")
    wait_until(lambda: second.owned == set(range(PARTITIONS)), "an assignment", seen=crew)
    fill(server, topic, [b"something to commit"])
    wait_until(lambda: not first.is_running, "the end of the first", seen=crew)
    assert "same group.instance.id" in first.failures[-1]
    crew.catch_up(ends_of(server, topic))
    assert len(standing(server.port, crew.group, is_classic=True).members) == 1


def test_in_the_new_protocol_a_second_member_of_the_same_name_is_turned_away(server, recruit):
    crew = recruit(server, Client("librdkafka", "consumer"))
    (first,) = crew.hire(instance_id="one")
    crew.settle()
    (second,) = crew.hire(instance_id="one")
    wait_until(lambda: not second.is_running, "the end of the second", seen=crew)
    assert "still used by another member" in second.failures[-1]
    assert first.is_running
    assert first.owned == set(range(PARTITIONS))
