"""FindCoordinator: v0-6.

Behaviour:
* Every group is coordinated by this broker, whatever its name, and whether there is one or not.
* Transactions and share groups are not supported: INVALID_REQUEST, on which clients give up and
  show the message to their user. A transactional producer asks this first of all, and
  InitProducerId has no message, so this is where it has to be said.

Version notes:
* v0-3: one key, answered at the top. v1+: a message beside the error.
* v4+: any number of keys, each with an answer of its own.
"""

from typing import Final

from kafscale.broker import addresses
from kafscale.broker.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2

SEVERAL_SINCE: Final = 4

_REFUSED: Final = {
    TRANSACTION: "Transactions are not supported: do not set a transactional.id",
    SHARE: "Share groups are not supported",
}


def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.key_type != GROUP:
        unknown = f"Unknown coordinator type: {request.key_type}"
        raise InvalidRequestError(_REFUSED.get(request.key_type, unknown))
    node_id = context.broker.node_id
    host, port = addresses.advertised(context)
    if context.version < SEVERAL_SINCE:
        return FindCoordinatorResponse(node_id=node_id, host=host, port=port)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=node_id, host=host, port=port) for key in request.keys
        ]
    )


def refuse(
    context: RequestContext, request: FindCoordinatorRequest, error: KafscaleError
) -> FindCoordinatorResponse:
    """The same error for every key."""
    code, message = error.code, str(error)
    if context.version < SEVERAL_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.keys
        ]
    )
