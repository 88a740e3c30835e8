"""CreateAcls: v0-3.

Behaviour:
* Rules are added, and obeyed by this broker once it has answered; each that makes no sense fails on
  its own, as INVALID_REQUEST. One that is there already is no error.
* Where authorization is off: SECURITY_DISABLED.

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
    read = [_read(written) for written in request.acls]
    acls = [acl for acl in read if isinstance(acl, Acl)]
    await broker.access_store.add_acls(acls)
    for acl in acls:
        broker.audit.changed(context, "acl created", acl=format_acl(acl))
    return CreateAclsResponse(
        acls=[_answer(None if isinstance(each, Acl) else each) for each in read]
    )


def error_response(
    _context: RequestContext, request: CreateAclsRequest, error: KafscaleError
) -> CreateAclsResponse:
    """The same error for every rule."""
    return CreateAclsResponse(acls=[_answer(error) for _ in request.acls])


def _read(written: AclToCreate) -> Acl | InvalidRequestError:
    try:
        return parse_acl(written)
    except InvalidRequestError as error:
        return error


def _answer(error: KafscaleError | None) -> CreatedAcl:
    if error is None:
        return CreatedAcl(error_message=None)
    return CreatedAcl(error_code=error.code, error_message=str(error))
