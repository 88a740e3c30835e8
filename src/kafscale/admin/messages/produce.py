"""Produces one record and waits until it is durable; encodes payloads that a user entered.

Input that is not in the stated format is rejected with a reason, before anything is written. The
record is written once, however often it is sent. If no broker responds in time, the error says that
the record may have been written.
"""

import asyncio
import base64
import binascii
from random import SystemRandom
from typing import Final, Literal

import msgspec

from kafscale.admin.messages.codecs import SchemaCodecs
from kafscale.admin.messages.query import SchemaText, schema_for
from kafscale.client.client import Client
from kafscale.client.errors import UnreachableError
from kafscale.client.idempotent_appender import IdempotentAppender, producer_id_of
from kafscale.client.partition import Partition
from kafscale.client.partitioner import partition_of
from kafscale.errors import (
    InvalidRecordError,
    InvalidRequestError,
    KafscaleError,
    UnknownTopicError,
)
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.records import Header, Record, TimestampType, build

SECONDS_MAX: Final = 20.0
HEADERS_MAX: Final = 100
_INT64_MAX: Final = 2**63 - 1
_RANDOM_BITS: Final = 128

InputFormat = Literal["text", "json", "hex", "base64", "avro", "protobuf"]


class PayloadInput(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key or a value as entered."""

    text: str
    format: InputFormat = "text"
    schema: SchemaText | None = None


class NewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record to write; without a value a tombstone, without a partition by its key."""

    partition: int | None = None
    key: PayloadInput | None = None
    value: PayloadInput | None = None
    headers: tuple[tuple[str, str | None], ...] = ()
    timestamp_ms: int


class ProducedRecord(msgspec.Struct, frozen=True, rename="camel"):
    partition: int
    offset: int
    timestamp_ms: int


async def produce(
    client: Client, topic: str, new: NewRecord, codecs: SchemaCodecs
) -> ProducedRecord:
    """Write a record; return its partition, offset and timestamp."""
    if len(new.headers) > HEADERS_MAX:
        raise InvalidRequestError(f"a record can have at most {HEADERS_MAX} headers here")
    if not 0 <= new.timestamp_ms <= _INT64_MAX:
        raise InvalidRequestError(f"{new.timestamp_ms} is not a time in milliseconds since 1970")
    # In a thread: a schema may have to be fetched or compiled.
    record = await asyncio.to_thread(_record, new, topic, codecs)
    metadata = await client.topic(topic)
    index = _partition(metadata, new.partition, record.key)
    partition = Partition(client, metadata, index)
    # A random producer id lets the broker detect a duplicate after a retry.
    producer_id = producer_id_of("console", SystemRandom().getrandbits(_RANDOM_BITS))
    appender = IdempotentAppender(partition, producer_id, 0)
    try:
        async with asyncio.timeout(SECONDS_MAX):
            await appender.add(build([record]))
            (offset,) = await appender.flush()
            timestamp_ms = await _stored_timestamp(partition, offset, record.timestamp_ms)
    except TimeoutError:
        raise UnreachableError(
            f"{partition} did not respond within {SECONDS_MAX:.0f} s: the record may have been"
            " written; check before you write it again"
        ) from None
    return ProducedRecord(index, offset, timestamp_ms)


def _record(new: NewRecord, topic: str, codecs: SchemaCodecs) -> Record:
    return Record(
        0,
        new.timestamp_ms,
        None if new.key is None else encode_input(new.key, codecs, f"{topic}-key"),
        None if new.value is None else encode_input(new.value, codecs, f"{topic}-value"),
        tuple(Header(key, None if value is None else value.encode()) for key, value in new.headers),
    )


def _partition(topic: TopicMetadata, requested: int | None, key: bytes | None) -> int:
    indexes = sorted(each.index for each in topic.partitions)
    if requested is not None:
        if requested not in indexes:
            raise UnknownTopicError(
                f"topic {topic.name} has no partition {requested}, only 0 to {indexes[-1]}"
            )
        return requested
    if key is not None:
        return partition_of(key, len(indexes))
    return SystemRandom().choice(indexes)


async def _stored_timestamp(partition: Partition, offset: int, sent_ms: int) -> int:
    """The timestamp in the log: the broker's if the topic uses LogAppendTime."""
    try:
        batches = await partition.fetch(offset, bytes_max=1)
    except KafscaleError:
        return sent_ms  # The record is written; the user may lack permission to read.
    if batches and batches[0].timestamp_type is TimestampType.LOG_APPEND_TIME:
        return batches[0].max_timestamp_ms
    return sent_ms


def encode_input(payload: PayloadInput, codecs: SchemaCodecs, subject: str) -> bytes:
    """The bytes of a payload; without a schema, the registry's latest of the subject is used."""
    schema = schema_for(payload.format, payload.schema)
    if schema is None:
        return _plain_bytes(payload)
    try:
        value = msgspec.json.decode(payload.text)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise InvalidRequestError(
            f"a payload in {payload.format} must be given as JSON: {error}"
        ) from None
    try:
        return codecs.encode(schema, subject, value)
    except InvalidRecordError as error:
        raise InvalidRequestError(str(error)) from error


def _plain_bytes(payload: PayloadInput) -> bytes:
    try:
        match payload.format:
            case "json":
                msgspec.json.decode(payload.text, type=msgspec.Raw)
            case "hex":
                return bytes.fromhex(payload.text)
            case "base64":
                return base64.b64decode("".join(payload.text.split()), validate=True)
        return payload.text.encode()
    except (msgspec.MsgspecError, RecursionError, binascii.Error, ValueError) as error:
        raise InvalidRequestError(f"invalid {payload.format}: {error}") from None
