"""A group whose members are replaced, one by one, by some of the new protocol, while it works.

And back again: nothing is lost and nothing is read twice on either way.
"""

import pytest

from services.group_member import Client
from services.trickle import Trickle

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
def test_members_are_replaced_while_the_group_works(server, recruit, topic, before, after):
    crew = recruit(server, before)
    with Trickle(server.address, topic, PARTITIONS):
        crew.hire(2)
        crew.settle()
        for member in crew.present:
            crew.hire(client=after)
            crew.settle()
            member.leave()
            crew.settle()
        crew.get_on(ends_of(server, topic))
    ends = ends_of(server, topic)
    crew.catch_up(ends)
    crew.disband()
    assert crew.problems(ends) == []
