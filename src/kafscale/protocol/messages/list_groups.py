"""ListGroups (16): all groups that a broker coordinates.

Version notes:
* v1: throttle time in the response.
* v3: flexible.
* v4: only groups in some states; the state in the response (KIP-518).
* v5: only groups of some types; the type in the response (KIP-848).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String, since


class ListGroupsRequest(Message):
    state_filters: Annotated[list[String], since(4)] = []
    """Empty for groups in any state."""
    type_filters: Annotated[list[String], since(5)] = []
    """Empty for groups of any type."""


class ListedGroup(Message):
    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, since(4)] = ""
    group_type: Annotated[String, since(5)] = ""


class ListGroupsResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []


LIST_GROUPS = Api(16, "ListGroups", ListGroupsRequest, ListGroupsResponse, 5, flexible_since=3)
