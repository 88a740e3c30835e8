"""CreateAcls: v0-3.

Behaviour:
* ACLs are added, and this broker enforces them when it responds; each invalid ACL fails on its own
  with INVALID_REQUEST. An ACL that exists already is no error.
* If authorization is disabled: SECURITY_DISABLED.

Version notes:
* v0: literal patterns only. v1+: prefixed ones as well.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.acls import check_enabled, format_acl, parse_acl
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Acl, Operation, ResourceType
from kafscale.protocol.messages.create_acls import (
    AclToCreate,
    CreateAclsRequest,
    CreateAclsResponse,
    CreatedAcl,
)


async def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    broker = context.broker
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    topic_admission.check_admin_allowed(broker)
    check_enabled(broker)
    parsed = [_parse(fields) for fields in request.acls]
    acls = [acl for acl in parsed if isinstance(acl, Acl)]
    await broker.access_store.add_acls(acls)
    for acl in acls:
        broker.audit.changed(context, "acl created", acl=format_acl(acl))
    return CreateAclsResponse(
        acls=[_result(None if isinstance(each, Acl) else each) for each in parsed]
    )


def error_response(
    _context: RequestContext, request: CreateAclsRequest, error: KafscaleError
) -> CreateAclsResponse:
    """The same error for every ACL."""
    return CreateAclsResponse(acls=[_result(error) for _ in request.acls])


def _parse(fields: AclToCreate) -> Acl | InvalidRequestError:
    try:
        return parse_acl(fields)
    except InvalidRequestError as error:
        return error


def _result(error: KafscaleError | None) -> CreatedAcl:
    if error is None:
        return CreatedAcl(error_message=None)
    return CreatedAcl(error_code=error.code, error_message=str(error))
