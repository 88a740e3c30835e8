"""A broker that is killed again and again while members come and go, whatever they are about.

A rebalance that is cut off is begun again, and no commit that was acknowledged is forgotten.
"""

import time
from random import Random

import pytest

from services.background_producer import BackgroundProducer
from services.group_member import Client

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
def test_a_rebalance_outlives_the_broker(start_server, create_group, topic, client):
    server = start_server()
    consumers = create_group(server, client, session_timeout_ms=10_000)
    chance = Random(5)
    with BackgroundProducer(server.address, topic, PARTITIONS):
        consumers.start_members()
        consumers.wait_until_stable()
        for _ in range(ROUNDS):
            consumers.start_members()
            time.sleep(chance.uniform(0.1, 1))
            server.kill()
            server.start()
        consumers.wait_until_stable()
        consumers.wait_for_commits_beyond(ends_of(server, topic))
    ends = ends_of(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    assert consumers.problems(ends, may_rewind=True) == []
