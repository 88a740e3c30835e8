"""A broker that is killed again and again while members come and go, whatever they are about.

A rebalance that is cut off is begun again, and no commit that was acknowledged is forgotten.
"""

import time
from random import Random

import pytest

from services.group_member import Client
from services.trickle import Trickle

from .clients import clients
from .conftest import PARTITIONS, ends_of

pytestmark = pytest.mark.timeout(240)

ROUNDS = 3
CLIENTS = [
    Client("librdkafka", "range"),
    Client("librdkafka", "cooperative-sticky"),
    Client("librdkafka", "consumer"),
]


@clients(CLIENTS)
def test_a_rebalance_outlives_the_broker(start_server, recruit, topic, client):
    server = start_server()
    crew = recruit(server, client, session_timeout_ms=10_000)
    chance = Random(5)
    with Trickle(server.address, topic, PARTITIONS):
        crew.hire()
        crew.settle()
        for _ in range(ROUNDS):
            crew.hire()
            time.sleep(chance.uniform(0.1, 1))
            server.kill()
            server.start()
        crew.settle()
        crew.get_on(ends_of(server, topic))
    ends = ends_of(server, topic)
    crew.catch_up(ends)
    crew.disband()
    assert crew.problems(ends, may_rewind=True) == []
