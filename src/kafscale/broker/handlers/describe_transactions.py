"""DescribeTransactions: v0.

Behaviour:
* State, producer, timeout, start and partitions of transactional ids; each succeeds or fails on its
  own. An unknown one is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST.
* Requires DESCRIBE on each transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED; topics
  that the client may not DESCRIBE are left out.

Version notes: there is one version.
"""

from collections import defaultdict
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicInTransaction,
)
from kafscale.transactions.model import TransactionRecord

NONE: Final = -1


def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transactions=[_describe(context, name) for name in request.transactional_ids]
    )


def error_response(
    _context: RequestContext, request: DescribeTransactionsRequest, error: KafscaleError
) -> DescribeTransactionsResponse:
    """The same error for every transactional id."""
    return DescribeTransactionsResponse(
        transactions=[_failed(name, error) for name in request.transactional_ids]
    )


def _describe(context: RequestContext, name: str) -> DescribedTransaction:
    try:
        context.require(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name)
        record = context.broker.transactions.coordinator.describe(name)
    except KafscaleError as error:
        return _failed(name, error)
    return DescribedTransaction(
        transactional_id=name,
        transaction_state=record.state,
        transaction_timeout_ms=record.timeout_ms,
        transaction_start_time_ms=record.started_ms,
        producer_id=record.producer_id,
        producer_epoch=record.epoch,
        topics=_topics(context, record),
    )


def _topics(context: RequestContext, record: TransactionRecord) -> list[TopicInTransaction]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(record.partitions):
        by_topic[topic].append(index)
    return [
        TopicInTransaction(topic, indexes)
        for topic, indexes in by_topic.items()
        if context.can_describe(ResourceType.TOPIC, topic)
    ]


def _failed(name: str, error: KafscaleError) -> DescribedTransaction:
    return DescribedTransaction(error_code=error.code, transactional_id=name)
