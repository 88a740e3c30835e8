"""Members come, leave, die and return while records are produced: every client, one story.

Nothing is lost, and nothing is read twice but what a killed member had not committed.
"""

import pytest

from services.trickle import Trickle

from .clients import every_kind_of_client
from .conftest import PARTITIONS, ends_of

pytestmark = pytest.mark.timeout(600)  # The first run builds programs.

LEAVE_S_MAX = 3
"""Half a session; most of it is for the clients, which learn of it with their next heartbeat."""
SESSION_S = 6


@every_kind_of_client
def test_members_come_and_go_and_every_record_is_read_once(server, recruit, topic, client):
    crew = recruit(server, client)
    with Trickle(server.address, topic, PARTITIONS):
        first, second, _ = crew.hire(3)
        crew.settle()

        crew.mark()
        first.leave()
        assert crew.settle() < LEAVE_S_MAX
        if client.is_incremental:
            assert crew.moved() == 0

        crew.mark()
        crew.hire()
        crew.settle()
        if client.is_incremental:
            assert crew.moved() == PARTITIONS // 3

        crew.mark()
        second.kill()
        assert crew.settle() > SESSION_S / 2, "others had its partitions while its session lasted"
        if client.is_incremental:
            assert crew.moved() == 0
    ends = ends_of(server, topic)
    assert min(ends.values()) > 100
    crew.catch_up(ends)
    crew.disband()
    assert crew.problems(ends) == []
