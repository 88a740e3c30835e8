"""Cases for the permissions table: transactions."""

from typing import Any

from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    TopicToAdd,
    TransactionToExtend,
)
from kafscale.protocol.messages.describe_transactions import (
    DESCRIBE_TRANSACTIONS,
    DescribeTransactionsRequest,
)
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from kafscale.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    PartitionToCommit,
    TopicToCommit,
    TxnOffsetCommitRequest,
)
from kafscale.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    MarkerToWrite,
    TopicToMark,
    WriteTxnMarkersRequest,
)
from unit.broker.handlers.authorization_cases import TOPIC, Case, first_partition, top_level_error
from unit.broker.handlers.group_members import GROUP
from unit.broker.in_memory_broker import InMemoryBroker

TRANSACTIONAL_ID = "transfers"
BY_CLIENTS = range(4)
BY_BROKERS = range(4, 6)


async def with_transaction(broker: InMemoryBroker) -> None:
    """Begin a transaction in the partition."""
    await broker.begin(TRANSACTIONAL_ID, (TOPIC, 0))


def add_partitions(_scene: object, version: int) -> AddPartitionsToTxnRequest:
    topics = [TopicToAdd(TOPIC, [0])]
    if version in BY_BROKERS:
        transaction = TransactionToExtend(TRANSACTIONAL_ID, topics=topics)
        return AddPartitionsToTxnRequest(transactions=[transaction])
    return AddPartitionsToTxnRequest(transactional_id=TRANSACTIONAL_ID, topics=topics)


def add_offsets(*_: object) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(TRANSACTIONAL_ID, 0, 0, GROUP)


def commit(*_: object) -> TxnOffsetCommitRequest:
    topics = [TopicToCommit(TOPIC, [PartitionToCommit(index=0, committed_offset=1)])]
    return TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID, group_id=GROUP, producer_id=1, topics=topics
    )


def write_marker(*_: object) -> WriteTxnMarkersRequest:
    marker = MarkerToWrite(1, 0, committed=False, topics=[TopicToMark(TOPIC, [0])])
    return WriteTxnMarkersRequest([marker])


def marker_error(response: Any) -> int:
    return first_partition(response.markers[0])


def describe(*_: object) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest([TRANSACTIONAL_ID])


CASES = [
    Case(
        ADD_PARTITIONS_TO_TXN,
        ResourceType.TRANSACTIONAL_ID,
        Operation.WRITE,
        add_partitions,
        first_partition,
        versions=BY_CLIENTS,
    ),
    Case(
        ADD_PARTITIONS_TO_TXN,
        ResourceType.TOPIC,
        Operation.WRITE,
        add_partitions,
        first_partition,
        versions=BY_CLIENTS,
    ),
    Case(
        ADD_PARTITIONS_TO_TXN,
        ResourceType.CLUSTER,
        Operation.CLUSTER_ACTION,
        add_partitions,
        top_level_error,
        versions=BY_BROKERS,
    ),
    Case(
        ADD_OFFSETS_TO_TXN,
        ResourceType.TRANSACTIONAL_ID,
        Operation.WRITE,
        add_offsets,
        top_level_error,
    ),
    Case(ADD_OFFSETS_TO_TXN, ResourceType.GROUP, Operation.READ, add_offsets, top_level_error),
    Case(
        END_TXN,
        ResourceType.TRANSACTIONAL_ID,
        Operation.WRITE,
        lambda *_: EndTxnRequest(TRANSACTIONAL_ID, 1, 0, committed=True),
        top_level_error,
    ),
    Case(WRITE_TXN_MARKERS, ResourceType.CLUSTER, Operation.ALTER, write_marker, marker_error),
    Case(
        TXN_OFFSET_COMMIT, ResourceType.TRANSACTIONAL_ID, Operation.WRITE, commit, first_partition
    ),
    Case(TXN_OFFSET_COMMIT, ResourceType.GROUP, Operation.READ, commit, first_partition),
    Case(TXN_OFFSET_COMMIT, ResourceType.TOPIC, Operation.READ, commit, first_partition),
    Case(
        DESCRIBE_TRANSACTIONS,
        ResourceType.TRANSACTIONAL_ID,
        Operation.DESCRIBE,
        describe,
        lambda response: response.transactions[0].error_code,
        prepare=with_transaction,
    ),
    Case(
        DESCRIBE_TRANSACTIONS,
        ResourceType.TOPIC,
        Operation.DESCRIBE,
        describe,
        lambda response: response.transactions[0].topics,
        prepare=with_transaction,
    ),
    Case(
        LIST_TRANSACTIONS,
        ResourceType.TRANSACTIONAL_ID,
        Operation.DESCRIBE,
        lambda *_: ListTransactionsRequest(),
        lambda response: [each.transactional_id for each in response.transactions],
        prepare=with_transaction,
    ),
]
