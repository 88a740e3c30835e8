"""The APIs whose messages are declared but which are not served: those of transactions.

ApiVersions does not list them, so a client that asks does not send them. One that does not ask gets
UNSUPPORTED_VERSION, which it can report, where a closed connection would look like a broken network
and be retried (docs/decisions/0030). Invariant: no response reads as a success; where a response
has no place for an error, because the request names nothing, the connection is closed.

Other unknown APIs and versions have no response that could be encoded: `dispatcher` closes the
connection, as Kafka does.
"""

from typing import NoReturn

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.route import Route, route
from kafscale.errors import KafscaleError, UnknownApiError
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.messages import add_partitions_to_txn, txn_offset_commit
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafscale.protocol.messages.end_txn import END_TXN
from kafscale.protocol.messages.list_transactions import LIST_TRANSACTIONS
from kafscale.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

TOP_LEVEL_ERROR_SINCE = 4
"""Since this version, the response of AddPartitionsToTxn has an error code of its own."""


def refuse(context: RequestContext, _request: Message) -> NoReturn:
    """The handler of all of them."""
    raise UnknownApiError(f"{context.api.name} is not supported")


def _add_partitions(
    context: RequestContext, request: AddPartitionsToTxnRequest, error: KafscaleError
) -> AddPartitionsToTxnResponse | None:
    if context.version >= TOP_LEVEL_ERROR_SINCE:
        return AddPartitionsToTxnResponse(error_code=error.code)
    topics = [
        add_partitions_to_txn.AddedTopic(
            topic.name,
            [add_partitions_to_txn.AddedPartition(index, error.code) for index in topic.partitions],
        )
        for topic in request.topics
        if topic.partitions
    ]
    return AddPartitionsToTxnResponse(topics=topics) if topics else None


def _commit_offsets(
    _context: RequestContext, request: TxnOffsetCommitRequest, error: KafscaleError
) -> TxnOffsetCommitResponse | None:
    topics = [
        txn_offset_commit.CommittedTopic(
            topic.name,
            [
                txn_offset_commit.CommittedPartition(partition.index, error.code)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
        if topic.partitions
    ]
    return TxnOffsetCommitResponse(topics=topics) if topics else None


def _describe(
    _context: RequestContext, request: DescribeTransactionsRequest, error: KafscaleError
) -> DescribeTransactionsResponse | None:
    described = [
        DescribedTransaction(error_code=error.code, transactional_id=transactional_id)
        for transactional_id in request.transactional_ids
    ]
    return DescribeTransactionsResponse(transactions=described) if described else None


UNSERVED: tuple[Route, ...] = (
    route(ADD_PARTITIONS_TO_TXN, refuse, _add_partitions),
    route(ADD_OFFSETS_TO_TXN, refuse),
    route(END_TXN, refuse),
    route(TXN_OFFSET_COMMIT, refuse, _commit_offsets),
    route(DESCRIBE_TRANSACTIONS, refuse, _describe),
    route(LIST_TRANSACTIONS, refuse),
)
