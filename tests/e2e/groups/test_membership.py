"""Members of every client join, leave, crash and return while records are produced.

No record is lost; only uncommitted records of a killed member are read twice.
"""

import pytest

from services.background_producer import BackgroundProducer

from .clients import every_kind_of_client
from .conftest import PARTITIONS, end_offsets

pytestmark = pytest.mark.timeout(600)  # The first run builds programs.

LEAVE_S_MAX = 3
"""Half a session timeout; clients learn of the rebalance with their next heartbeat."""
SESSION_S = 6


@every_kind_of_client
def test_every_record_is_read_once_while_members_join_and_leave(
    server, create_group, topic, client
):
    consumers = create_group(server, client)
    with BackgroundProducer(server.address, topic, PARTITIONS):
        first, second, _ = consumers.start_members(3)
        consumers.wait_until_stable()

        consumers.reset_moved_count()
        first.leave()
        assert consumers.wait_until_stable() < LEAVE_S_MAX
        if client.is_incremental:
            assert consumers.count_moved() == 0

        consumers.reset_moved_count()
        consumers.start_members()
        consumers.wait_until_stable()
        if client.is_incremental:
            assert consumers.count_moved() == PARTITIONS // 3

        consumers.reset_moved_count()
        second.kill()
        assert consumers.wait_until_stable() > SESSION_S / 2, (
            "its partitions moved before its session timed out"
        )
        if client.is_incremental:
            assert consumers.count_moved() == 0
    ends = end_offsets(server, topic)
    assert min(ends.values()) > 100
    consumers.wait_until_caught_up(ends)
    consumers.stop_all()
    assert consumers.problems(ends) == []
