"""DescribeGroups (15): the state and the members of classic groups.

Version notes:
* v1: throttle time in the response.
* v3: the operations that the client is authorized for (KIP-430).
* v4: group instances of static members (KIP-345).
* v5: flexible.
* v6: an unknown group is GROUP_ID_NOT_FOUND, with a message, instead of a dead group (KIP-1043).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Bytes, Int16, Int32, Message, String, since


class DescribeGroupsRequest(Message):
    group_ids: list[String] = []
    include_authorized_operations: Annotated[Boolean, since(3)] = False


class DescribedMember(Message):
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(4)] = None
    client_id: String = ""
    client_host: String = ""
    metadata: Bytes = b""
    """What the member sent for the selected protocol; empty unless the group is stable."""
    assignment: Bytes = b""
    """Empty unless the group is stable."""


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(6)] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_name: String = ""
    """The selected protocol; empty unless the group is stable."""
    members: list[DescribedMember] = []
    authorized_operations: Annotated[Int32, since(3)] = -2147483648
    """A bit for each ACL operation, at the position of its number; the default if not requested."""


class DescribeGroupsResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    groups: list[DescribedGroup] = []


DESCRIBE_GROUPS = Api(
    15, "DescribeGroups", DescribeGroupsRequest, DescribeGroupsResponse, 6, flexible_since=5
)
