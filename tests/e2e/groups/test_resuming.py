"""A group whose members have all left, and that goes on later where it stopped."""

import pytest

from services.background_producer import BackgroundProducer
from services.member_events import Read
from services.waiting import wait_until

from .clients import every_foreign_client
from .conftest import PARTITIONS, ends_of

pytestmark = pytest.mark.timeout(600)  # The first run builds the programs.


@every_foreign_client
def test_whoever_comes_later_reads_only_what_is_new(server, create_group, topic, client):
    consumers = create_group(server, client)
    first_ends = work(server, consumers, topic)
    last_ends = work(server, consumers, topic)
    _, late = consumers.members
    firsts = {}
    for event in late.events:
        if isinstance(event, Read):
            firsts.setdefault(event.partition, event.first)
    assert firsts == first_ends
    assert consumers.problems(last_ends) == []


def work(server, consumers, topic):
    """Let a new member read what there is and some more, and leave; how far it came."""
    before = ends_of(server, topic)
    consumers.start_members()
    with BackgroundProducer(server.address, topic, PARTITIONS):
        wait_until(lambda: min(ends_of(server, topic).values()) > max(before.values()), "records")
        consumers.wait_until_stable()
    ends = ends_of(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    return ends
