"""InitProducerId: v0-5.

Behaviour:
* An idempotent producer gets a new id, with epoch 0, also if it sends an id and an epoch: so does
  Kafka, whose coordinator remembers those of transactional producers only.
* A transactional producer gets the id of its transactional id, with a higher epoch: earlier
  producers are fenced. A transaction that is open is aborted first: until that is complete, the
  response is CONCURRENT_TRANSACTIONS, which clients retry.
* If this broker has `transaction.idsMax` ids, a new one gets COORDINATOR_NOT_AVAILABLE, which
  clients retry.
* A transaction timeout of 0 or above `transaction.maxTimeoutMs` is INVALID_TRANSACTION_TIMEOUT, an
  empty transactional id INVALID_REQUEST.
* Requires IDEMPOTENT_WRITE on the cluster or WRITE on any topic, else CLUSTER_AUTHORIZATION_FAILED;
  for transactional producers WRITE on their id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes:
* v3+: the request may have an id and an epoch, both or neither: a producer continues after an error
  (KIP-360), unless it was fenced.
* v4+: PRODUCER_FENCED; INVALID_PRODUCER_EPOCH before.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.transactions import admit, error_code
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

NONE: Final = -1
"""The value without a producer id or epoch."""

FENCED_SINCE: Final = 4


async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    _check_authorized(context, request)
    if (request.producer_id == NONE) != (request.producer_epoch == NONE):
        raise InvalidRequestError("Producer id and epoch must both be set, or neither")
    if request.transactional_id is None:
        producer_id = await context.broker.producer_ids.next()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    await admit(context, request.transactional_id)
    initialized = await context.broker.transactions.coordinator.init_producer(
        request.transactional_id,
        request.transaction_timeout_ms,
        request.producer_id,
        request.producer_epoch,
    )
    return InitProducerIdResponse(
        producer_id=initialized.producer_id, producer_epoch=initialized.epoch
    )


def _check_authorized(context: RequestContext, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not context.is_authorized_for_any(Operation.WRITE, ResourceType.TOPIC):
        context.require(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)


def error_response(
    context: RequestContext, _request: InitProducerIdRequest, error: KafscaleError
) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code(context, error, FENCED_SINCE), producer_id=NONE, producer_epoch=NONE
    )
