"""DeleteGroups (42): delete groups without members, with their offsets (KIP-229).

Version notes:
* v2: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String


class DeleteGroupsRequest(Message):
    group_ids: list[String] = []


class DeletedGroup(Message):
    group_id: String = ""
    error_code: Int16 = 0


class DeleteGroupsResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: list[DeletedGroup] = []


DELETE_GROUPS = Api(
    42, "DeleteGroups", DeleteGroupsRequest, DeleteGroupsResponse, 2, flexible_since=2
)
