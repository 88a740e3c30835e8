"""Encodes transactional ids as protobuf messages.

Invariants: decoding returns a value equal to the encoded one; an invalid value raises
`DamagedObjectError`. States that are left in the event that enters them are never stored.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.protobuf import format_time, parse, read_time, serialize
from kafscale.metadata.store.base import Entry
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_TIME,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)

STORED_STATES: Final = frozenset(TransactionState) - {
    TransactionState.PREPARE_EPOCH_FENCE,
    TransactionState.DEAD,
}


def encode_transaction(transaction: TransactionRecord) -> bytes:
    assert transaction.state in STORED_STATES, transaction.state
    record = messages.TransactionalId(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        last_producer_epoch=transaction.last_epoch,
        timeout_ms=transaction.timeout_ms,
        state=transaction.state,
        partitions=_encode_partitions(transaction.partitions),
        updated_at=format_time(transaction.updated_ms),
        transaction_version=transaction.version,
    )
    if transaction.started_ms != NO_TIME:
        record.started_at = format_time(transaction.started_ms)
    return serialize(record)


def decode_transaction(entry: Entry) -> TransactionRecord:
    record = parse(messages.TransactionalId(), entry)
    key = keys.parse(entry.key)
    assert isinstance(key, keys.TransactionalIdKey), entry.key
    if record.transactional_id != key.transactional_id:
        raise DamagedObjectError(
            entry.key, f"contains another transactional id: {record.transactional_id!r}"
        )
    if record.state not in STORED_STATES:
        raise DamagedObjectError(entry.key, f"unknown state {record.state!r}")
    if record.transaction_version not in set(TransactionVersion):
        raise DamagedObjectError(
            entry.key, f"unknown transaction version {record.transaction_version}"
        )
    return TransactionRecord(
        transactional_id=record.transactional_id,
        producer_id=record.producer_id,
        previous_producer_id=record.previous_producer_id,
        next_producer_id=record.next_producer_id,
        epoch=_checked_epoch(entry, record.producer_epoch),
        last_epoch=_checked_epoch(entry, record.last_producer_epoch),
        timeout_ms=record.timeout_ms,
        state=TransactionState(record.state),
        partitions=frozenset(
            (topic.topic, partition)
            for topic in record.partitions
            for partition in topic.partitions
        ),
        started_ms=read_time(entry, record.started_at) if record.started_at else NO_TIME,
        updated_ms=read_time(entry, record.updated_at),
        version=TransactionVersion(record.transaction_version),
    )


def _encode_partitions(partitions: Iterable[TopicPartition]) -> Iterable[messages.Assignment]:
    """Each topic with its partitions, in order: equal transactions have equal values."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return [messages.Assignment(topic=topic, partitions=them) for topic, them in by_topic.items()]


def _checked_epoch(entry: Entry, epoch: int) -> int:
    if not NO_EPOCH <= epoch <= EPOCH_MAX:
        raise DamagedObjectError(entry.key, f"not an epoch: {epoch}")
    return epoch
