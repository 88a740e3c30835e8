"""LeaveGroup (13): end the membership in a classic group.

Version notes:
* v1: throttle time in the response.
* v3: any number of members, which may be named by their group instance (KIP-345).
* v4: flexible.
* v5: each member says why it leaves (KIP-800).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String, since, until


class LeavingMember(Message):
    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, since(5)] = None


class LeaveGroupRequest(Message):
    group_id: String = ""
    member_id: Annotated[String, until(2)] = ""
    members: Annotated[list[LeavingMember], since(3)] = []


class DepartedMember(Message):
    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


class LeaveGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[list[DepartedMember], since(3)] = []


LEAVE_GROUP = Api(13, "LeaveGroup", LeaveGroupRequest, LeaveGroupResponse, 5, flexible_since=4)
