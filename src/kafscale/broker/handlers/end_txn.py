"""EndTxn: v0-5.

Behaviour:
* Commits or aborts the open transaction. The response is sent once the outcome is stored: it does
  not change any more, and the markers are written to the partitions after that. Until they are, the
  next transaction gets CONCURRENT_TRANSACTIONS, which clients retry.
* Requires WRITE on the transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED.

Version notes:
* v2+: PRODUCER_FENCED; INVALID_PRODUCER_EPOCH before.
* v5+: every end bumps the epoch; the response has the producer id and epoch of the next transaction
  (KIP-890). A transaction without partitions can be aborted: this counts like the beginning of one.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.transactions import admit, error_code
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafscale.transactions.model import TransactionVersion

FENCED_SINCE: Final = 2
EPOCH_BUMP_SINCE: Final = 5


async def handle(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    bumps_epoch = context.version >= EPOCH_BUMP_SINCE
    coordinator = context.broker.transactions.coordinator
    if bumps_epoch and not request.committed and not coordinator.is_open(request.transactional_id):
        await admit(context, request.transactional_id)
    ended = await coordinator.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        is_commit=request.committed,
        version=TransactionVersion.V2 if bumps_epoch else TransactionVersion.V0,
    )
    return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.epoch)


def error_response(
    context: RequestContext, _request: EndTxnRequest, error: KafscaleError
) -> EndTxnResponse:
    return EndTxnResponse(error_code=error_code(context, error, FENCED_SINCE))
