"""Writes one record, as a producer that waits until it is durable.

The law: a record is written once, however often it has to be sent until somebody answers; where
nobody does in time, it is said that it may have been written.
"""

import asyncio
from random import SystemRandom
from typing import Final, NamedTuple

import msgspec

from kafscale.admin.messages.codecs import Codecs
from kafscale.admin.messages.input_parser import Typed, bytes_of
from kafscale.client.client import Client
from kafscale.client.errors import UnreachableError
from kafscale.client.idempotent_appender import Appender, producer_id_of
from kafscale.client.partition import Partition
from kafscale.client.partitioner import partition_of
from kafscale.errors import InvalidRequestError, KafscaleError, UnknownTopicError
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import Header, Record, TimestampType, build

SECONDS_MAX: Final = 20.0
HEADERS_MAX: Final = 100
_INT64_MAX: Final = 2**63 - 1
_IDENTITY_BITS: Final = 128


class NewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record to write; without a value a tombstone, without a partition where its key says."""

    partition: int | None = None
    key: Typed | None = None
    value: Typed | None = None
    headers: tuple[tuple[str, str | None], ...] = ()
    timestamp_ms: int


class Written(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int


async def produce(client: Client, topic: str, new: NewRecord, codecs: Codecs) -> Written:
    """Write a record, and say where it came to lie."""
    if len(new.headers) > HEADERS_MAX:
        raise InvalidRequestError(f"a record may be given {HEADERS_MAX} headers here")
    if not 0 <= new.timestamp_ms <= _INT64_MAX:
        raise InvalidRequestError(f"{new.timestamp_ms} is no time in milliseconds since 1970")
    # In a thread: a schema may have to be asked for, or compiled.
    record = await asyncio.to_thread(_record, new, topic, codecs)
    metadata = await client.topic(topic)
    index = _partition(metadata, new.partition, record.key)
    partition = Partition(client, metadata, index)
    # Nobody else has this identity, so that whatever is sent twice is known again.
    identity = producer_id_of("console", SystemRandom().getrandbits(_IDENTITY_BITS))
    appender = Appender(partition, identity, 0)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            await appender.add(build([record]))
            (offset,) = await appender.flush()
            timestamp_ms = await _stored_timestamp(partition, offset, record.timestamp_ms)
    except TimeoutError:
        raise UnreachableError(
            f"{partition} did not answer within {SECONDS_MAX:.0f} s: the record may have been"
            " written; look before you write it again"
        ) from None
    return Written(index, offset, timestamp_ms)


def _record(new: NewRecord, topic: str, codecs: Codecs) -> Record:
    return Record(
        0,
        new.timestamp_ms,
        None if new.key is None else bytes_of(new.key, codecs, f"{topic}-key"),
        None if new.value is None else bytes_of(new.value, codecs, f"{topic}-value"),
        tuple(Header(key, None if value is None else value.encode()) for key, value in new.headers),
    )


def _partition(topic: TopicMetadata, wanted: int | None, key: bytes | None) -> int:
    indexes = sorted(each.index for each in topic.partitions)
    if wanted is not None:
        if wanted not in indexes:
            raise UnknownTopicError(
                f"topic {topic.name} has no partition {wanted}, only 0 to {indexes[-1]}"
            )
        return wanted
    if key is not None:
        return partition_of(key, len(indexes))
    return SystemRandom().choice(indexes)


async def _stored_timestamp(partition: Partition, offset: int, sent_ms: int) -> int:
    """The time that the record has: the broker's, where the topic wants that."""
    try:
        batches = await partition.fetch(offset, bytes_max=1)
    except KafscaleError:
        return sent_ms  # It is written all the same; whoever wrote it need not be allowed to read.
    if batches and batches[0].timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batches[0].max_timestamp_ms
    return sent_ms
