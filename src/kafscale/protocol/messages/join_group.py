"""JoinGroup (11): become a member of a classic group, or take part in its next generation.

Version notes:
* v1: a rebalance timeout beside that of the session (KIP-62).
* v2: throttle time in the response.
* v4: a new member is rejected with MEMBER_ID_REQUIRED and an id, then joins with it (KIP-394).
* v5: static members name their group instance (KIP-345).
* v6: flexible.
* v7: the protocol type in the response, where the protocol's name may now be null (KIP-559).
* v8: the client says why it joins (KIP-800).
* v9: a rejoining leader may have to skip the assignment (KIP-814).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    Boolean,
    Bytes,
    Int16,
    Int32,
    Message,
    String,
    nullable,
    since,
)


class OfferedProtocol(Message):
    name: String = ""
    metadata: Bytes = b""


class JoinGroupRequest(Message):
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, since(1)] = -1
    """-1 for the session's timeout, which served for both in v0."""
    member_id: String = ""
    """Empty until the coordinator has given one."""
    group_instance_id: Annotated[String | None, since(5)] = None
    protocol_type: String = ""
    protocols: list[OfferedProtocol] = []
    """Most preferred first."""
    reason: Annotated[String | None, since(8)] = None


class JoinedMember(Message):
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(5)] = None
    metadata: Bytes = b""


class JoinGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, since(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, since(7)] = None
    protocol_name: Annotated[String | None, nullable(since=7)] = ""
    leader: String = ""
    """The member id of the leader."""
    skip_assignment: Annotated[Boolean, since(9)] = False
    member_id: String = ""
    members: list[JoinedMember] = []
    """All members in the response to the leader, none in those of the others."""


JOIN_GROUP = Api(11, "JoinGroup", JoinGroupRequest, JoinGroupResponse, 9, flexible_since=6)
