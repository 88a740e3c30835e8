"""Groups with other protocol types, such as those of Connect workers.

The broker treats their metadata as opaque: the leader receives the members' metadata, and members
receive their assignments, byte for byte, also after a restart.
"""

import pytest

from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.join_group import JOIN_GROUP, JoinGroupRequest, OfferedProtocol
from kafscale.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from kafscale.protocol.messages.sync_group import SYNC_GROUP
from services.scripted_members import (
    JOIN_VERSION,
    SYNC_VERSION,
    TIMEOUT_MS,
    join,
    scripted_members,
    sync,
)
from services.wire import Wire

pytestmark = pytest.mark.timeout(120)

INCONSISTENT_GROUP_PROTOCOL = 23
METADATA = [bytes(range(256)), b"", b"\x00\x01\xff" * 1000]
"""The metadata of three workers; none of it is a valid consumer subscription."""


@pytest.mark.parametrize("protocol_type", ["connect", "sr"])
def test_metadata_and_assignments_are_forwarded_unchanged(start_server, group, protocol_type):
    server = start_server()
    with scripted_members(server.port, group, protocol_type, METADATA) as members:
        responses = join(members)
        assert {response.error_code for response in responses} == {0}
        assert {response.protocol_name for response in responses} == {"shared"}
        (leading,) = (response for response in responses if response.members)
        assert leading.leader == leading.member_id
        sent = {member.member_id: member.metadata for member in members}
        assert {each.member_id: each.metadata for each in leading.members} == sent

        assigned = {member.member_id: member.metadata[::-1] for member in members}
        for member, synced in zip(members, sync(members, responses, assigned), strict=True):
            assert synced.error_code == 0
            assert synced.assignment == assigned[member.member_id]

    server.kill()
    server.start()
    with Wire(server.port) as wire:
        everything = wire.call(LIST_GROUPS, 5, ListGroupsRequest()).groups
        (listed,) = (each for each in everything if each.group_id == group)
        assert (listed.protocol_type, listed.group_state) == (protocol_type, "Stable")
        (described,) = wire.call(DESCRIBE_GROUPS, 5, DescribeGroupsRequest([group])).groups
        assert {each.member_id: each.metadata for each in described.members} == sent
        assert {each.member_id: each.assignment for each in described.members} == assigned
        for member, response in zip(members, responses, strict=True):
            assert member.heartbeat(response.generation_id, wire) == 0
            again = wire.call(SYNC_GROUP, SYNC_VERSION, member.sync_request(response))
            assert again.assignment == assigned[member.member_id]


def test_member_with_another_protocol_type_is_rejected(server, group):
    with scripted_members(server.port, group, "connect", METADATA) as members:
        assert {response.error_code for response in join(members)} == {0}
        with Wire(server.port) as wire:
            request = JoinGroupRequest(
                group,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                protocol_type="consumer",
                protocols=[OfferedProtocol("shared", b"")],
            )
            response = wire.call(JOIN_GROUP, JOIN_VERSION, request)
            assert response.error_code == INCONSISTENT_GROUP_PROTOCOL
