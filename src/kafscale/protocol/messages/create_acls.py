"""CreateAcls (30): add ACLs (KIP-140). Its numbers are explained in `describe_acls`.

Version notes:
* v1: pattern types (KIP-290); v0 has literal names only.
* v2: flexible.
* v3: ACLs for users (KIP-373).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String, since


class AclToCreate(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Annotated[Int8, since(1)] = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class CreateAclsRequest(Message):
    acls: list[AclToCreate] = []


class CreatedAcl(Message):
    error_code: Int16 = 0
    error_message: String | None = ""


class CreateAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    acls: list[CreatedAcl] = []
    """One for each ACL of the request, in the same order."""


CREATE_ACLS = Api(30, "CreateAcls", CreateAclsRequest, CreateAclsResponse, 3, flexible_since=2)
