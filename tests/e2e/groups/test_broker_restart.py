"""A broker that stops, or is killed, and comes back in time: its groups go on as if nothing was.

No generation is lost, nobody's partitions move, and whoever takes over a partition afterwards goes
on from what was committed before.
"""

import pytest

from services.group_history import committed
from services.group_wire import standing
from services.selection import long_except
from services.trickle import Trickle
from services.waiting import wait_until

from .clients import every_client
from .conftest import PARTITIONS, ends_of

pytestmark = pytest.mark.timeout(180)

SESSION_MS = 30_000
"""Longer than any restart, so that members do return in time."""


@pytest.mark.parametrize("ending", long_except(["terminate", "kill"], "kill".__eq__))
@every_client
def test_members_notice_nothing(start_server, recruit, topic, client, ending):
    server = start_server()
    crew = recruit(server, client, session_timeout_ms=SESSION_MS)
    is_classic = client.strategy != "consumer"
    with Trickle(server.address, topic, PARTITIONS):
        first, *_ = crew.hire(3)
        crew.settle()
        wait_until(lambda: len(committed(crew.lives)) == PARTITIONS, "first commits")
        before = standing(server.port, crew.group, is_classic=is_classic)
        owned = [member.owned for member in crew.members]
        crew.mark()

        getattr(server, ending)()
        server.start()
        ends = ends_of(server, topic)
        wait_until(
            lambda: all(
                offset > ends[partition] for partition, offset in committed(crew.lives).items()
            ),
            "commits after the restart",
            seen=crew,
        )
        assert standing(server.port, crew.group, is_classic=is_classic) == before
        assert [member.owned for member in crew.members] == owned
        assert crew.moved() == 0

        first.leave()
        crew.settle()
        crew.get_on(ends_of(server, topic))
    ends = ends_of(server, topic)
    crew.catch_up(ends)
    crew.disband()
    assert crew.problems(ends) == []
