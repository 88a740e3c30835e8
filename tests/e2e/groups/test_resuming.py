"""A group whose members have all left, and that goes on later where it stopped."""

import pytest

from services.member_events import Read
from services.trickle import Trickle
from services.waiting import wait_until

from .clients import every_foreign_client
from .conftest import PARTITIONS, ends_of

pytestmark = pytest.mark.timeout(600)  # The first run builds the programs.


@every_foreign_client
def test_whoever_comes_later_reads_only_what_is_new(server, recruit, topic, client):
    crew = recruit(server, client)
    first_ends = work(server, crew, topic)
    last_ends = work(server, crew, topic)
    _, late = crew.members
    firsts = {}
    for event in late.events:
        if isinstance(event, Read):
            firsts.setdefault(event.partition, event.first)
    assert firsts == first_ends
    assert crew.problems(last_ends) == []


def work(server, crew, topic):
    """Let a new member read what there is and some more, and leave; how far it came."""
    before = ends_of(server, topic)
    crew.hire()
    with Trickle(server.address, topic, PARTITIONS):
        wait_until(lambda: min(ends_of(server, topic).values()) > max(before.values()), "records")
        crew.settle()
    ends = ends_of(server, topic)
    crew.catch_up(ends)
    crew.disband()
    return ends
