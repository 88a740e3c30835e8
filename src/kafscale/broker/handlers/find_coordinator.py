"""FindCoordinator: v0-6.

Behaviour:
* The coordinator of a group is the broker that owns its shard, whether the group exists or not;
  while no broker owns it, the response is COORDINATOR_NOT_AVAILABLE.
* Transactional ids are kept in the same shards as groups, so their coordinators are found alike.
* Share groups are not supported: INVALID_REQUEST, on which clients give up and show the message to
  their user.
* Requires DESCRIBE on each group, else GROUP_AUTHORIZATION_FAILED; or on the transactional id, else
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes:
* v0-3: one key, answered at the top level. v1+: an error message.
* v4+: any number of keys, each with its own result.
"""

from typing import Final

from kafscale.broker.network.advertised import Node, node
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import CoordinatorUnavailableError, InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = 0, 1, 2

BATCHES_SINCE: Final = 4

_RESOURCES: Final = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}


def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.key_type == SHARE:
        raise InvalidRequestError("Share groups are not supported")
    if request.key_type not in _RESOURCES:
        raise InvalidRequestError(f"Unknown coordinator type: {request.key_type}")
    if context.version < BATCHES_SINCE:
        result = _coordinator(context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=result.error_code,
            error_message=result.error_message,
            node_id=result.node_id,
            host=result.host,
            port=result.port,
        )
    return FindCoordinatorResponse(
        coordinators=[_coordinator(context, request.key_type, key) for key in request.keys]
    )


def _coordinator(context: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        context.require(Operation.DESCRIBE, _RESOURCES[key_type], key)
        owner = _find(context, key)
    except KafscaleError as error:
        return _failed(key, error)
    return Coordinator(key=key, node_id=owner.id, host=owner.host, port=owner.port)


def _find(context: RequestContext, key: str) -> Node:
    leader_id, _ = context.broker.cluster.leader(SHARDS_TOPIC, shard_of(key))
    owner = node(context, leader_id)
    if owner is None:
        raise CoordinatorUnavailableError("There is no coordinator at the moment.")
    return owner


def error_response(
    context: RequestContext, request: FindCoordinatorRequest, error: KafscaleError
) -> FindCoordinatorResponse:
    """The same error for every key."""
    code, message = error.code, str(error)
    if context.version < BATCHES_SINCE:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(coordinators=[_failed(key, error) for key in request.keys])


def _failed(key: str, error: KafscaleError) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, port=-1, error_code=error.code, error_message=str(error)
    )
