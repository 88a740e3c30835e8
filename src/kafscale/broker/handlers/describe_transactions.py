"""DescribeTransactions: v0.

Behaviour:
* State, producer, timeout, start and partitions of transactional ids; each succeeds or fails on its
  own. An unknown one is TRANSACTIONAL_ID_NOT_FOUND, an empty one INVALID_REQUEST. A repeated one
  is answered again, as in Kafka; if that is a lot, INVALID_REQUEST.
* Requires DESCRIBE on each transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED; topics
  that the client may not DESCRIBE are left out.

Version notes: there is one version.
"""

from collections import defaultdict
from collections.abc import Awaitable
from typing import Final

from kafscale.broker.requests import slices
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.repeats import Repeats
from kafscale.broker.requests.slices import Work
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicInTransaction,
)
from kafscale.transactions.model import TransactionRecord

PARTITIONS_AT_ONCE: Final = 500

NONE: Final = -1


def handle(
    context: RequestContext, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse | Awaitable[DescribeTransactionsResponse]:
    return slices.serve(context, _describe_all(context, request))


def error_response(
    _context: RequestContext, request: DescribeTransactionsRequest, error: KafscaleError
) -> DescribeTransactionsResponse:
    """The same error for every transactional id."""
    return DescribeTransactionsResponse(
        transactions=[_failed(name, error) for name in request.transactional_ids]
    )


def _describe_all(
    context: RequestContext, request: DescribeTransactionsRequest
) -> Work[DescribeTransactionsResponse]:
    repeats = Repeats()
    response = DescribeTransactionsResponse()
    for name in request.transactional_ids:
        yield slices.ELEMENT_RESULTS
        response.transactions.append((yield from _describe(context, name, repeats)))
    return response


def _describe(context: RequestContext, name: str, repeats: Repeats) -> Work[DescribedTransaction]:
    try:
        repeats.check(name)
        context.require(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name)
        record = context.broker.transactions.coordinator.describe(name)
    except KafscaleError as error:
        return _failed(name, error)
    repeats.add(name, 1 + len(record.partitions))
    return DescribedTransaction(
        transactional_id=name,
        transaction_state=record.state,
        transaction_timeout_ms=record.timeout_ms,
        transaction_start_time_ms=record.started_ms,
        producer_id=record.producer_id,
        producer_epoch=record.epoch,
        topics=(yield from _topics(context, record)),
    )


def _topics(context: RequestContext, record: TransactionRecord) -> Work[list[TopicInTransaction]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for count, (topic, index) in enumerate(record.partitions, 1):
        by_topic[topic].append(index)
        if count % PARTITIONS_AT_ONCE == 0:
            yield PARTITIONS_AT_ONCE
    yield len(record.partitions) % PARTITIONS_AT_ONCE
    described = []
    for topic in sorted(by_topic):
        if context.can_describe(ResourceType.TOPIC, topic):
            described.append(TopicInTransaction(topic, sorted(by_topic[topic])))
        yield slices.ELEMENT_RESULTS
    return described


def _failed(name: str, error: KafscaleError) -> DescribedTransaction:
    return DescribedTransaction(error_code=error.code, transactional_id=name)
