"""DeleteAcls (31): remove the ACLs that match filters (KIP-140).

Its numbers are explained in `describe_acls`.

Version notes:
* v1: pattern types (KIP-290); v0 has literal names only.
* v2: flexible.
* v3: ACLs for users (KIP-373).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String, since


class AclFilter(Message):
    resource_type: Int8 = 0
    resource_name: String | None = ""
    """None: any name. The same holds for `principal` and `host`."""
    pattern_type: Annotated[Int8, since(1)] = 3
    principal: String | None = ""
    host: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsRequest(Message):
    filters: list[AclFilter] = []


class DeletedAcl(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Annotated[Int8, since(1)] = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AppliedFilter(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    acls: list[DeletedAcl] = []


class DeleteAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    filters: list[AppliedFilter] = []
    """One for each filter of the request, in the same order."""


DELETE_ACLS = Api(31, "DeleteAcls", DeleteAclsRequest, DeleteAclsResponse, 3, flexible_since=2)
