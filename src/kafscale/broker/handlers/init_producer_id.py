"""InitProducerId: v0-5.

Behaviour:
* An idempotent producer gets a new id, with epoch 0, also if it sends an id and an epoch: so does
  Kafka, whose coordinator remembers those of transactional producers only.
* Transactions are not supported: a transactional id is refused with INVALID_REQUEST, on which
  clients give up at once. FindCoordinator has sent them the reason before.
* Requires IDEMPOTENT_WRITE on the cluster or WRITE on any topic, else CLUSTER_AUTHORIZATION_FAILED;
  for transactional producers WRITE on their id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes:
* v3+: the request may have an id and an epoch, both or neither.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NONE = -1
"""The value without a producer id or epoch."""


async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    _check_authorized(context, request)
    if request.transactional_id is not None:
        raise InvalidRequestError("Transactions are not supported: do not set a transactional.id")
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        raise InvalidRequestError("Producer id and epoch must both be set, or neither")
    producer_id = await context.broker.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check_authorized(context: RequestContext, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not context.is_authorized_for_any(Operation.WRITE, ResourceType.TOPIC):
        context.require(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)


def error_response(
    _context: RequestContext, _request: InitProducerIdRequest, error: KafscaleError
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=NONE, producer_epoch=NONE)
