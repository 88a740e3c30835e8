"""A group whose members have all left continues later from its committed offsets."""

import pytest

from services.background_producer import BackgroundProducer
from services.member_events import Read
from services.waiting import wait_until

from .clients import every_foreign_client
from .conftest import PARTITIONS, end_offsets

pytestmark = pytest.mark.timeout(600)  # The first run builds the programs.


@every_foreign_client
def test_later_member_reads_new_records_only(server, create_group, topic, client):
    consumers = create_group(server, client)
    first_ends = consume_and_leave(server, consumers, topic)
    last_ends = consume_and_leave(server, consumers, topic)
    _, late = consumers.members
    firsts = {}
    for event in late.events:
        if isinstance(event, Read):
            firsts.setdefault(event.partition, event.first)
    assert firsts == first_ends
    assert consumers.problems(last_ends) == []


def consume_and_leave(server, consumers, topic):
    """Let a new member read all records and some new ones, and leave; return the end offsets."""
    before = end_offsets(server, topic)
    consumers.start_members()
    with BackgroundProducer(server.address, topic, PARTITIONS):
        wait_until(
            lambda: min(end_offsets(server, topic).values()) > max(before.values()), "records"
        )
        consumers.wait_until_stable()
    ends = end_offsets(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    return ends
