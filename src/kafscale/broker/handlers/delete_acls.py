"""DeleteAcls: v0-3.

Behaviour:
* The rules that match a filter are removed, and told. This broker does not obey them any more once
  it has answered. A filter that makes no sense fails on its own, as INVALID_REQUEST.
* Where authorization is off: SECURITY_DISABLED.

Version notes:
* v0: literal patterns only. v1+: the filter says which.
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
    found: list[list[Acl] | InvalidRequestError] = []
    for written in request.filters:
        found.append(_find(broker, written))
        # Looking through all rules takes its time, and others have to be served meanwhile.
        await asyncio.sleep(0)
    acls = dict.fromkeys(acl for each in found if isinstance(each, list) for acl in each)
    await broker.access_store.remove_acls(acls)
    for acl in acls:
        broker.audit.changed(context, "acl deleted", acl=format_acl(acl))
    return DeleteAclsResponse(filters=[_answer(each) for each in found])


def error_response(
    _context: RequestContext, request: DeleteAclsRequest, error: KafscaleError
) -> DeleteAclsResponse:
    """The same error for every filter."""
    return DeleteAclsResponse(filters=[_answer(error) for _ in request.filters])


def _find(broker: Services, written: AclFilter) -> list[Acl] | InvalidRequestError:
    try:
        wanted = parse_filter(written)
    except InvalidRequestError as error:
        return error
    only = wanted.only()
    if only is not None:
        return [only] if broker.access_store.has(only) else []
    return sorted(filter(wanted.matches, broker.access_store.acls))


def _answer(found: list[Acl] | KafscaleError) -> AppliedFilter:
    if isinstance(found, KafscaleError):
        return AppliedFilter(error_code=found.code, error_message=str(found))
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
            for acl in found
        ],
    )
