"""A broker that is killed repeatedly while members join.

An interrupted rebalance starts again, and no acknowledged commit is lost.
"""

import time
from random import Random

import pytest

from services.background_producer import BackgroundProducer
from services.group_member import Client

from .clients import clients
from .conftest import PARTITIONS, end_offsets

pytestmark = pytest.mark.timeout(240)

ROUNDS = 3
CLIENTS = [
    Client("librdkafka", "range"),
    Client("librdkafka", "cooperative-sticky"),
    Client("librdkafka", "consumer"),
]


@clients(CLIENTS)
def test_rebalance_completes_after_broker_crashes(start_server, create_group, topic, client):
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
        consumers.wait_for_commits_beyond(end_offsets(server, topic))
    ends = end_offsets(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    assert consumers.problems(ends, may_rewind=True) == []
