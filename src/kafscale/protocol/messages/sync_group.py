"""SyncGroup (14): a classic group's leader sends the assignment, each member gets its part.

Version notes:
* v1: throttle time in the response.
* v3: static members name their group instance (KIP-345).
* v4: flexible.
* v5: type and name of the protocol, both ways, so that either side can compare them (KIP-559).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Bytes, Int16, Int32, Message, String, since


class MemberAssignment(Message):
    member_id: String = ""
    assignment: Bytes = b""


class SyncGroupRequest(Message):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignments: list[MemberAssignment] = []
    """Those of all members in the leader's request, none in those of the others."""


class SyncGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, since(5)] = None
    protocol_name: Annotated[String | None, since(5)] = None
    assignment: Bytes = b""


SYNC_GROUP = Api(14, "SyncGroup", SyncGroupRequest, SyncGroupResponse, 5, flexible_since=4)
