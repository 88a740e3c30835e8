"""Groups that are not of consumers, such as those of Connect's workers: their bytes are their own.

What a member sends, the leader gets; what the leader assigns, the member gets; nothing is read,
nothing is changed, and a restart changes nothing either.
"""

import pytest

from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafscale.protocol.messages.sync_group import SYNC_GROUP
from services.group_worker import JOIN, SYNC, TIMEOUT_MS, join, sync, workers
from services.wire import Wire

pytestmark = pytest.mark.timeout(120)

INCONSISTENT_GROUP_PROTOCOL = 23
METADATA = [bytes(range(256)), b"", b"\x00\x01\xff" * 1000]
"""What three workers send; none of it would make sense as a consumer's subscription."""


@pytest.mark.parametrize("protocol_type", ["connect", "sr"])
def test_metadata_and_assignments_are_handed_on_untouched(start_server, group, protocol_type):
    server = start_server()
    with workers(server.port, group, protocol_type, METADATA) as crew:
        answers = join(crew)
        assert {answer.error_code for answer in answers} == {0}
        assert {answer.protocol_name for answer in answers} == {"shared"}
        (leading,) = (answer for answer in answers if answer.members)
        assert leading.leader == leading.member_id
        sent = {worker.member_id: worker.metadata for worker in crew}
        assert {each.member_id: each.metadata for each in leading.members} == sent

        assigned = {worker.member_id: worker.metadata[::-1] for worker in crew}
        for worker, synced in zip(crew, sync(crew, answers, assigned), strict=True):
            assert synced.error_code == 0
            assert synced.assignment == assigned[worker.member_id]

    server.kill()
    server.start()
    with Wire(server.port) as wire:
        everything = wire.call(LIST_GROUPS, 5, ListGroupsRequest()).groups
        (listed,) = (each for each in everything if each.group_id == group)
        assert (listed.protocol_type, listed.group_state) == (protocol_type, "Stable")
        (described,) = wire.call(DESCRIBE_GROUPS, 5, DescribeGroupsRequest([group])).groups
        assert {each.member_id: each.metadata for each in described.members} == sent
        assert {each.member_id: each.assignment for each in described.members} == assigned
        for worker, answer in zip(crew, answers, strict=True):
            assert worker.heartbeat(answer.generation_id, wire) == 0
            again = wire.call(SYNC_GROUP, SYNC, worker.sync_request(answer))
            assert again.assignment == assigned[worker.member_id]


def test_who_speaks_another_protocol_is_kept_out(server, group):
    with workers(server.port, group, "connect", METADATA) as crew:
        assert {answer.error_code for answer in join(crew)} == {0}
        with Wire(server.port) as wire:
            request = JoinGroupRequest(
                group,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                protocol_type="consumer",
                protocols=[OfferedProtocol("shared", b"")],
            )
            answer = wire.call(JOIN_GROUP, JOIN, request)
            assert answer.error_code == INCONSISTENT_GROUP_PROTOCOL
