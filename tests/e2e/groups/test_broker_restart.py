"""A broker that stops or is killed and returns in time: its groups continue unchanged.

The generation stays, no partition moves, and the next owner of a partition continues from the
committed offset.
"""

import pytest

from services.background_producer import BackgroundProducer
from services.group_history import committed
from services.group_state import describe_group_state
from services.selection import long_except
from services.waiting import wait_until

from .clients import every_client
from .conftest import PARTITIONS, end_offsets

pytestmark = pytest.mark.timeout(180)

SESSION_MS = 30_000
"""Longer than any restart, so that members return in time."""


@pytest.mark.parametrize("ending", long_except(["terminate", "kill"], "kill".__eq__))
@every_client
def test_groups_survive_a_broker_restart_without_rebalance(
    start_server, create_group, topic, client, ending
):
    server = start_server()
    consumers = create_group(server, client, session_timeout_ms=SESSION_MS)
    is_classic = client.strategy != "consumer"
    with BackgroundProducer(server.address, topic, PARTITIONS):
        first, *_ = consumers.start_members(3)
        consumers.wait_until_stable()
        wait_until(lambda: len(committed(consumers.histories)) == PARTITIONS, "first commits")
        before = describe_group_state(server.port, consumers.group, is_classic=is_classic)
        owned = [member.owned for member in consumers.members]
        consumers.reset_moved_count()

        getattr(server, ending)()
        server.start()
        ends = end_offsets(server, topic)
        wait_until(
            lambda: all(
                offset > ends[partition]
                for partition, offset in committed(consumers.histories).items()
            ),
            "commits after the restart",
            seen=consumers,
        )
        assert describe_group_state(server.port, consumers.group, is_classic=is_classic) == before
        assert [member.owned for member in consumers.members] == owned
        assert consumers.count_moved() == 0

        first.leave()
        consumers.wait_until_stable()
        consumers.wait_for_commits_beyond(end_offsets(server, topic))
    ends = end_offsets(server, topic)
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    assert consumers.problems(ends) == []
