"""FindCoordinator: v0-6.

Behaviour:
* Groups are not served yet: COORDINATOR_NOT_AVAILABLE, on which clients ask again.
* Transactions and share groups are not supported: INVALID_REQUEST, on which clients give up and
  show the message to their user. A transactional producer asks this first of all, and
  InitProducerId has no message, so this is where it has to be said.

Version notes:
* v0-3: one key, answered at the top. v1+: a message beside the error.
* v4+: any number of keys, each with an answer of its own.
"""

from typing import Final

from kafscale.broker.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2

_REFUSED: Final = {
    TRANSACTION: "Transactions are not supported: do not set a transactional.id",
    SHARE: "Share groups are not supported",
}


def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.key_type != GROUP:
        unknown = f"Unknown coordinator type: {request.key_type}"
        raise InvalidRequestError(_REFUSED.get(request.key_type, unknown))
    return _nowhere(
        context, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, "Groups are not served yet"
    )


def refuse(
    context: RequestContext, request: FindCoordinatorRequest, error: KafscaleError
) -> FindCoordinatorResponse:
    """The same error for every key."""
    return _nowhere(context, request, error.code, str(error))


def _nowhere(
    context: RequestContext, request: FindCoordinatorRequest, code: int, message: str
) -> FindCoordinatorResponse:
    if context.version < 4:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.keys
        ]
    )
