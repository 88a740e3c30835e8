"""InitProducerId: v0-5.

Behaviour:
* A producer that is idempotent only gets a new id, with epoch 0. If it brings an id and an epoch,
  it still gets a new id: so does Kafka, whose coordinator remembers those of transactions only.
* Transactions are not supported: a transactional id is refused with INVALID_REQUEST, on which
  clients give up at once. They have been told why before, by FindCoordinator.
* Needs IDEMPOTENT_WRITE on the cluster or WRITE on some topic, CLUSTER_AUTHORIZATION_FAILED
  otherwise; of transactional producers WRITE on their id, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes:
* v3+: an id and an epoch may be brought, both or neither.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NONE = -1
"""No producer id, and no epoch."""


async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    _check_allowed(context, request)
    if request.transactional_id is not None:
        raise InvalidRequestError("Transactions are not supported: do not set a transactional.id")
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        raise InvalidRequestError("A producer id and an epoch come together")
    producer_id = await context.broker.producer_ids.next()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check_allowed(context: RequestContext, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not context.is_authorized_for_any(Operation.WRITE, ResourceType.TOPIC):
        context.require(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)


def error_response(
    _context: RequestContext, _request: InitProducerIdRequest, error: KafscaleError
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=NONE, producer_epoch=NONE)
