"""AddPartitionsToTxn: v0-5.

Behaviour:
* Makes partitions a part of the open transaction, and begins it if there is none. The response is
  sent once that is stored.
* If a partition is unknown or may not be written, none is added: the others get
  OPERATION_NOT_ATTEMPTED.
* Requires WRITE on the transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED, and on each
  topic, else TOPIC_AUTHORIZATION_FAILED, as for internal topics.

Version notes:
* v0-3: from clients, for one transaction. v2+: PRODUCER_FENCED; INVALID_PRODUCER_EPOCH before.
* v4+: from brokers, for any number of transactions, which may be verified only. Requires
  CLUSTER_ACTION on the cluster instead, else CLUSTER_AUTHORIZATION_FAILED.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.transactions import admit, error_code, partition_errors
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_partitions_to_txn import (
    AddedPartition,
    AddedTopic,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    ExtendedTransaction,
    TopicToAdd,
    TransactionToExtend,
)
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import TransactionVersion

BROKERS_SINCE: Final = 4
FENCED_SINCE: Final = 2


async def handle(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    if context.version < BROKERS_SINCE:
        return AddPartitionsToTxnResponse(topics=await _extend(context, _of_client(request)))
    context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    results = await asyncio.gather(*(_extend(context, each) for each in request.transactions))
    return AddPartitionsToTxnResponse(
        transactions=[
            ExtendedTransaction(transaction.transactional_id, topics)
            for transaction, topics in zip(request.transactions, results, strict=True)
        ]
    )


def error_response(
    context: RequestContext, request: AddPartitionsToTxnRequest, error: KafscaleError
) -> AddPartitionsToTxnResponse:
    """The top-level error; before v4, the same for every partition."""
    if context.version >= BROKERS_SINCE:
        return AddPartitionsToTxnResponse(error_code=error.code)
    code = error_code(context, error, FENCED_SINCE)
    return AddPartitionsToTxnResponse(topics=_topics(request.topics, {}, code))


def _of_client(request: AddPartitionsToTxnRequest) -> TransactionToExtend:
    return TransactionToExtend(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        topics=request.topics,
    )


async def _extend(context: RequestContext, transaction: TransactionToExtend) -> list[AddedTopic]:
    partitions = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    try:
        codes = await _codes(context, transaction, partitions)
    except KafscaleError as error:
        return _topics(transaction.topics, {}, error_code(context, error, FENCED_SINCE))
    return _topics(transaction.topics, codes, ErrorCode.NONE)


async def _codes(
    context: RequestContext, transaction: TransactionToExtend, partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """The codes of the partitions; those without one are added."""
    is_client = context.version < BROKERS_SINCE
    name = transaction.transactional_id
    if is_client:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name)
    if codes := partition_errors(context, partitions, is_client=is_client):
        return codes
    coordinator = context.broker.transactions.coordinator
    producer = (transaction.producer_id, transaction.producer_epoch)
    if transaction.verify_only:
        errors = await coordinator.verify_partitions(name, *producer, partitions)
        return {
            each: error_code(context, error, FENCED_SINCE)
            for each, error in errors.items()
            if error
        }
    if is_client:
        await admit(context, name, partitions)
    version = TransactionVersion.V0 if is_client else TransactionVersion.V2
    await coordinator.add_partitions(name, *producer, partitions, version)
    return {}


def _topics(
    topics: Sequence[TopicToAdd], codes: Mapping[TopicPartition, int], default: int
) -> list[AddedTopic]:
    return [
        AddedTopic(
            topic.name,
            [
                AddedPartition(index, codes.get((topic.name, index), default))
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
