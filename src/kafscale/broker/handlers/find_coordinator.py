"""FindCoordinator: v0-6.

Behaviour:
* A group is coordinated by the broker that owns its shard, whether there is such a group or not;
  while nobody does, the answer is COORDINATOR_NOT_AVAILABLE.
* Transactions and share groups are not supported: INVALID_REQUEST, on which clients give up and
  show the message to their user. A transactional producer asks this first of all, and
  InitProducerId has no message, so this is where it has to be said.

Version notes:
* v0-3: one key, answered at the top. v1+: a message beside the error.
* v4+: any number of keys, each with an answer of its own.
"""

from typing import Final

from kafscale.broker.addresses import node
from kafscale.broker.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.shards import SHARDS_TOPIC, shard_of
from kafscale.protocol.error_codes import ErrorCode
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
    if context.version < SEVERAL_SINCE:
        found = _find(context, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code, error_message=found.error_message, node_id=found.node_id,
            host=found.host, port=found.port,
        )  # fmt: skip
    return FindCoordinatorResponse(coordinators=[_find(context, key) for key in request.keys])


def _find(context: RequestContext, group_id: str) -> Coordinator:
    leader_id, _ = context.broker.cluster.leader(SHARDS_TOPIC, shard_of(group_id))
    found = node(context, leader_id)
    if found is None:
        return Coordinator(
            key=group_id, node_id=-1, port=-1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            error_message="The group's coordinator is being chosen.",
        )  # fmt: skip
    return Coordinator(key=group_id, node_id=found.id, host=found.host, port=found.port)


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
