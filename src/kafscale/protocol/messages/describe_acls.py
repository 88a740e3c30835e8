"""DescribeAcls (29): list the ACLs that match a filter (KIP-140).

The numbers that all three APIs on ACLs share (0 is always "unknown"):
* resource type: 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user;
* pattern type: 1 any, 2 match, 3 literal, 4 prefixed; 1 and 2 in filters only;
* operation: 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe,
  9 cluster action, 10 describe configs, 11 alter configs, 12 idempotent write, 13 create tokens,
  14 describe tokens, 15 two-phase commit;
* permission type: 1 any, 2 deny, 3 allow.

Version notes:
* v1: pattern types (KIP-290); v0 has literal names only.
* v2: flexible.
* v3: ACLs for users (KIP-373).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String, since


class DescribeAclsRequest(Message):
    resource_type: Int8 = 0
    resource_name: String | None = ""
    """None: any name. The same holds for `principal` and `host`."""
    pattern_type: Annotated[Int8, since(1)] = 3
    principal: String | None = ""
    host: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribedAcl(Message):
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribedResource(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Annotated[Int8, since(1)] = 3
    acls: list[DescribedAcl] = []


class DescribeAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribedResource] = []


DESCRIBE_ACLS = Api(
    29, "DescribeAcls", DescribeAclsRequest, DescribeAclsResponse, 3, flexible_since=2
)
