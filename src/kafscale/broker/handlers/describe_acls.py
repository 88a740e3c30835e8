"""DescribeAcls: v0-3.

Behaviour:
* The ACLs that match the filter, by resource. Roles are ACLs with an operation that Kafka's tools
  do not know, and print as UNKNOWN.
* If authorization is disabled: SECURITY_DISABLED.

Version notes:
* v0: literal patterns only; others are left out. v1+: the filter has the pattern type.
"""

from itertools import groupby

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.acls import check_enabled, parse_filter
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribedAcl,
    DescribedResource,
)


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    check_enabled(context.broker)
    acl_filter = parse_filter(request)
    matches = sorted(filter(acl_filter.matches, context.broker.access_store.acls))
    by_resource = groupby(
        matches, key=lambda acl: (acl.resource_type, acl.pattern_type, acl.resource_name)
    )
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribedResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    DescribedAcl(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
            for (resource_type, pattern_type, name), acls in by_resource
        ],
    )
