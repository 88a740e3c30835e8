"""Members of a working group are replaced one by one, from the classic to the consumer protocol.

And back: no record is lost or read twice in either direction.
"""

import pytest

from services.background_producer import BackgroundProducer
from services.group_member import Client

from .conftest import PARTITIONS, end_offsets

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
def test_group_changes_its_protocol_while_it_works(server, create_group, topic, before, after):
    consumers = create_group(server, before)
    with BackgroundProducer(server.address, topic, PARTITIONS):
        consumers.start_members(2)
        consumers.wait_until_stable()
        for member in consumers.running:
            consumers.start_members(client=after)
            consumers.wait_until_stable()
            member.leave()
            consumers.wait_until_stable()
        consumers.wait_for_commits_beyond(end_offsets(server, topic))
    ends = end_offsets(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    assert consumers.problems(ends) == []
