"""DeleteAcls: v0-3.

Behaviour:
* The ACLs that match a filter are deleted and returned. This broker no longer enforces them when it
  responds. An invalid filter fails on its own with INVALID_REQUEST.
* If authorization is disabled: SECURITY_DISABLED.

Version notes:
* v0: literal patterns only. v1+: the filter has the pattern type.
"""

import asyncio

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.acls import check_enabled, format_acl, parse_filter
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Acl, Operation, ResourceType
from kafscale.protocol.messages.delete_acls import (
    AclFilter,
    AppliedFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DeletedAcl,
)


async def handle(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    broker = context.broker
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    topic_admission.check_admin_allowed(broker)
    check_enabled(broker)
    matches: list[list[Acl] | InvalidRequestError] = []
    for fields in request.filters:
        matches.append(_find(broker, fields))
        # Matching all ACLs takes time: let other requests run in between.
        await asyncio.sleep(0)
    acls = dict.fromkeys(acl for each in matches if isinstance(each, list) for acl in each)
    await broker.access_store.remove_acls(acls)
    for acl in acls:
        broker.audit.changed(context, "acl deleted", acl=format_acl(acl))
    return DeleteAclsResponse(filters=[_result(each) for each in matches])


def error_response(
    _context: RequestContext, request: DeleteAclsRequest, error: KafscaleError
) -> DeleteAclsResponse:
    """The same error for every filter."""
    return DeleteAclsResponse(filters=[_result(error) for _ in request.filters])


def _find(broker: Services, fields: AclFilter) -> list[Acl] | InvalidRequestError:
    try:
        acl_filter = parse_filter(fields)
    except InvalidRequestError as error:
        return error
    only = acl_filter.only()
    if only is not None:
        return [only] if broker.access_store.has(only) else []
    return sorted(filter(acl_filter.matches, broker.access_store.acls))


def _result(matches: list[Acl] | KafscaleError) -> AppliedFilter:
    if isinstance(matches, KafscaleError):
        return AppliedFilter(error_code=matches.code, error_message=str(matches))
    return AppliedFilter(
        error_message=None,
        acls=[
            DeletedAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in matches
        ],
    )
