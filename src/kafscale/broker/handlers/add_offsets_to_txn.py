"""AddOffsetsToTxn: v0-4.

Behaviour:
* Makes the offsets of a group a part of the open transaction, and begins it if there is none: the
  partition of `__consumer_offsets` that stands for the group. The response is sent once that is
  stored.
* Requires WRITE on the transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and READ on
  the group, else GROUP_AUTHORIZATION_FAILED.

Version notes:
* v2+: PRODUCER_FENCED; INVALID_PRODUCER_EPOCH before.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.transactions import admit, error_code
from kafscale.broker.transaction_coordinator.transactions import offsets_partition
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

FENCED_SINCE: Final = 2


async def handle(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    partitions = [offsets_partition(request.group_id)]
    await admit(context, request.transactional_id, partitions)
    await context.broker.transactions.coordinator.add_partitions(
        request.transactional_id, request.producer_id, request.producer_epoch, partitions
    )
    return AddOffsetsToTxnResponse()


def error_response(
    context: RequestContext, _request: AddOffsetsToTxnRequest, error: KafscaleError
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error_code(context, error, FENCED_SINCE))
