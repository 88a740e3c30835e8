"""Requests of transactions, in short form; by default with the id, group and topic of the test.

Functions return error codes where there is nothing else to see, in the order of the request.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from conformance.groups.comparison import Response
from conformance.groups.normalization import topic_id
from conformance.transactions.client import TransactionClient, error_codes
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    TopicToAdd,
    TransactionToExtend,
)
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    PartitionToCommit,
    TopicToCommit,
    TxnOffsetCommitRequest,
)
from services.wire import batch_of

NONE = ErrorCode.NONE
CLASSIC: Final = 4
"""The last version of EndTxn that leaves the epoch as it is."""
SECOND: Final = 5
"""The first version of EndTxn that raises the epoch: version 2 of transactions."""
CLASSIC_PRODUCE: Final = 11
SECOND_PRODUCE: Final = 12
"""The first version of Produce that adds partitions to the transaction."""

Partitions = Mapping[str, Sequence[int]]


class Producer(NamedTuple):
    """The id and the epoch of a producer."""

    id: int
    epoch: int


# --- the coordinator ----------------------------------------------------------------------------


def init(
    client: TransactionClient,
    version: int = 5,
    *,
    transactional_id: str | None = "",
    timeout_ms: int = 60_000,
    producer: Producer = Producer(-1, -1),  # noqa: B008 - immutable.
    patient: bool = False,
) -> Response:
    request = InitProducerIdRequest(
        transactional_id=client.transactional_id if transactional_id == "" else transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
    )
    return client.call(INIT_PRODUCER_ID, version, request, patient=patient)


def start(client: TransactionClient, **fields: Any) -> Producer:
    """A producer that may begin a transaction."""
    response = init(client, patient=True, **fields)
    assert response.error_code == NONE
    return Producer(response.producer_id, response.producer_epoch)


def add_partitions(
    client: TransactionClient,
    producer: Producer,
    version: int = 3,
    *,
    partitions: Partitions | None = None,
    transactional_id: str | None = None,
    patient: bool = False,
) -> list[int]:
    """Add partitions as clients do, up to version 3."""
    partitions = {client.topic: [0]} if partitions is None else partitions
    request = AddPartitionsToTxnRequest(
        transactional_id=client.transactional_id if transactional_id is None else transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topics=[TopicToAdd(name, list(indexes)) for name, indexes in partitions.items()],
    )
    response = client.call(ADD_PARTITIONS_TO_TXN, version, request, patient=patient)
    return list(error_codes(response.topics))


def extension(
    client: TransactionClient,
    producer: Producer,
    *,
    verify_only: bool = False,
    partitions: Partitions | None = None,
    transactional_id: str | None = None,
) -> TransactionToExtend:
    """One of the transactions of a request between brokers, from version 4 on."""
    partitions = {client.topic: [0]} if partitions is None else partitions
    return TransactionToExtend(
        transactional_id=client.transactional_id if transactional_id is None else transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[TopicToAdd(name, list(indexes)) for name, indexes in partitions.items()],
    )


def extend(
    client: TransactionClient, version: int, *transactions: TransactionToExtend
) -> list[int]:
    """Add or verify partitions as brokers do; the first error is that of the response."""
    request = AddPartitionsToTxnRequest(transactions=list(transactions))
    return list(error_codes(client.call(ADD_PARTITIONS_TO_TXN, version, request)))


def add_offsets(
    client: TransactionClient,
    producer: Producer,
    version: int = 4,
    *,
    group: str | None = None,
    transactional_id: str | None = None,
) -> int:
    request = AddOffsetsToTxnRequest(
        transactional_id=client.transactional_id if transactional_id is None else transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id=client.group if group is None else group,
    )
    return int(client.call(ADD_OFFSETS_TO_TXN, version, request).error_code)


def commit_offsets(
    client: TransactionClient,
    producer: Producer,
    version: int = 4,
    *,
    group: str | None = None,
    transactional_id: str | None = None,
    member: str = "",
    generation: int = -1,
    instance: str | None = None,
    partitions: Partitions | None = None,
    offset: int = 7,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> list[int]:
    """Commit the same offset for all partitions."""
    partitions = {client.topic: [0]} if partitions is None else partitions
    request = TxnOffsetCommitRequest(
        transactional_id=client.transactional_id if transactional_id is None else transactional_id,
        group_id=client.group if group is None else group,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        generation_id=generation,
        member_id=member,
        group_instance_id=instance,
        topics=[
            TopicToCommit(
                name,
                [PartitionToCommit(index, offset, leader_epoch, metadata) for index in indexes],
            )
            for name, indexes in partitions.items()
        ],
    )
    return list(error_codes(client.call(TXN_OFFSET_COMMIT, version, request)))


def end(
    client: TransactionClient,
    producer: Producer,
    version: int = CLASSIC,
    *,
    committed: bool = True,
    transactional_id: str | None = None,
    patient: bool = True,
) -> Response:
    """End the transaction; the response may come before it is complete."""
    request = EndTxnRequest(
        transactional_id=client.transactional_id if transactional_id is None else transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=committed,
    )
    return client.call(END_TXN, version, request, patient=patient)


# --- records ------------------------------------------------------------------------------------


def produce(
    client: TransactionClient,
    producer: Producer,
    version: int = CLASSIC_PRODUCE,
    *,
    values: Sequence[bytes] = (b"value",),
    sequence: int = 0,
    partition: int = 0,
    topic: str | None = None,
    transactional: bool = True,
    transactional_id: str | None = "",
    acks: int = -1,
) -> Response:
    """Produce one batch; return the response's only partition."""
    data = batch_of(
        values,
        timestamp_ms=client.timestamp_ms,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return produce_batches(
        client,
        {partition: data},
        version,
        topic=topic,
        transactional_id=transactional_id,
        acks=acks,
    )[0]


def produce_batches(
    client: TransactionClient,
    batches: Mapping[int, bytearray],
    version: int = CLASSIC_PRODUCE,
    *,
    topic: str | None = None,
    transactional_id: str | None = "",
    acks: int = -1,
) -> list[Response]:
    """Produce a batch to each of some partitions."""
    topic = client.topic if topic is None else topic
    request = ProduceRequest(
        transactional_id=client.transactional_id if transactional_id == "" else transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topics=[
            TopicToProduce(
                name=topic,
                topic_id=topic_id(topic),
                partitions=[
                    PartitionToProduce(index, memoryview(data)) for index, data in batches.items()
                ],
            )
        ],
    )
    (produced,) = client.call(PRODUCE, version, request).topics
    return list(produced.partitions)


def write(client: TransactionClient, producer: Producer, **fields: Any) -> None:
    """Produce one batch in a classic transaction, whose partition is added first."""
    partitions = {client.topic: [fields.get("partition", 0)]}
    assert add_partitions(client, producer, partitions=partitions, patient=True) == [NONE]
    assert produce(client, producer, **fields).error_code == NONE


def write_second(client: TransactionClient, producer: Producer, **fields: Any) -> None:
    """Produce one batch in a transaction of version 2."""
    assert produce(client, producer, SECOND_PRODUCE, **fields).error_code == NONE
