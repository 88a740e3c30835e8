"""A group whose members are replaced, one by one, by some of the new protocol, while it works.

And back again: nothing is lost and nothing is read twice on either way.
"""

import pytest

from services.background_producer import BackgroundProducer
from services.group_member import Client

from .conftest import PARTITIONS, ends_of

pytestmark = pytest.mark.timeout(180)

REPLACEMENTS = [
    (Client("librdkafka", "range"), Client("librdkafka", "consumer")),
    (Client("librdkafka", "consumer"), Client("librdkafka", "range")),
    (Client("java", "cooperative-sticky"), Client("java", "consumer")),
    (Client("java", "consumer"), Client("java", "cooperative-sticky")),
]


@pytest.mark.parametrize(
    ("before", "after"),
    [REPLACEMENTS[0], *(pytest.param(*pair, marks=pytest.mark.long) for pair in REPLACEMENTS[1:])],
    ids=str,
)
def test_members_are_replaced_while_the_group_works(server, create_group, topic, before, after):
    consumers = create_group(server, before)
    with BackgroundProducer(server.address, topic, PARTITIONS):
        consumers.start_members(2)
        consumers.wait_until_stable()
        for member in consumers.running:
            consumers.start_members(client=after)
            consumers.wait_until_stable()
            member.leave()
            consumers.wait_until_stable()
        consumers.wait_for_commits_beyond(ends_of(server, topic))
    ends = ends_of(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    assert consumers.problems(ends) == []
