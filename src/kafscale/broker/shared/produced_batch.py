"""Reads and validates what a Produce request has for one partition.

Most batches are read on the event loop, in less than a millisecond. Large ones, and message sets of
old producers, take longer: `read_inline` leaves them to `read_in_thread`.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import msgspec

from kafscale.errors import InvalidRecordError, UnsupportedCodecError
from kafscale.records import BatchView, Codec, TimestampType, single_batch, up_convert
from kafscale.records.batch import MAGIC, MAGIC_POSITION, BatchHeader
from kafscale.records.validation import RecordRules, validate_inline, validate_records
from kafscale.storage.log.config import LogSettings
from kafscale.text.topic_partition import TopicPartition

INLINE_BYTES_MAX: Final = 1024 * 1024
"""Larger batches are verified in a thread: the checksum of 1 MiB takes some 0.1 ms."""

DECOMPRESSION_FACTOR_MAX: Final = 8
"""The decompressed size limit of a message set, as a multiple of max.message.bytes."""
MESSAGES_MAX: Final = 10_000
"""The number of messages in a message set, whose conversion takes some 20 us each. It is also the
default limit of librdkafka's batches."""
BATCHES_SINCE: Final = 3
"""The first version of Produce that has record batches, and one of them only."""
ZSTD_SINCE: Final = 7

_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="kafscale-produce")
"""Few, because each may decompress 128 MiB."""


class ProducedBatch(NamedTuple):
    """A batch that may be appended."""

    batch: BatchView
    header: BatchHeader


class BatchRules(msgspec.Struct, frozen=True, gc=False):
    """What a batch must comply with."""

    version: int
    """The version of the Produce request."""
    size_bytes_max: int
    is_create_time: bool
    records: RecordRules


def rules_of(
    version: int, topic_partition: TopicPartition, settings: LogSettings, now_ms: int
) -> BatchRules:
    """The rules for the batches of one partition, for a request that was received at `now_ms`."""
    is_create_time = settings.timestamp_type is TimestampType.CREATE_TIME
    records = (
        RecordRules(
            topic_partition,
            requires_keys=settings.requires_keys,
            timestamp_min_ms=now_ms - settings.timestamp_before_max_ms,
            timestamp_max_ms=now_ms + settings.timestamp_after_max_ms,
        )
        if is_create_time
        else RecordRules(topic_partition, requires_keys=settings.requires_keys)
    )
    return BatchRules(version, settings.message_bytes_max, is_create_time, records)


def read_inline(records: memoryview, rules: BatchRules) -> ProducedBatch | None:
    """`read` for the event loop; None if it would take too long."""
    if len(records) > INLINE_BYTES_MAX or _is_message_set(records, rules.version):
        return None
    produced = _read_header(_single_batch(records, rules.version), rules)
    largest_ms = validate_inline(*produced, rules.records)
    return None if largest_ms is None else _with_max_timestamp(produced, rules, largest_ms)


async def read_in_thread(records: memoryview, rules: BatchRules) -> ProducedBatch:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, read, records, rules)


def read(records: memoryview, rules: BatchRules) -> ProducedBatch:
    """The batch in a records field; raises a RecordsError if it may not be stored."""
    if _is_message_set(records, rules.version):
        bytes_max = DECOMPRESSION_FACTOR_MAX * rules.size_bytes_max
        converted = up_convert(records, decompressed_bytes_max=bytes_max, messages_max=MESSAGES_MAX)
        batch = BatchView(bytearray(converted))
    else:
        batch = _single_batch(records, rules.version)
    produced = _read_header(batch, rules)
    return _with_max_timestamp(produced, rules, validate_records(*produced, rules.records))


def _is_message_set(records: memoryview, version: int) -> bool:
    return version < BATCHES_SINCE and _has_older_magic(records)


def _has_older_magic(records: memoryview) -> bool:
    return len(records) > MAGIC_POSITION and records[MAGIC_POSITION] < MAGIC


def _single_batch(records: memoryview, version: int) -> BatchView:
    if version >= BATCHES_SINCE and _has_older_magic(records):
        raise InvalidRecordError(
            f"Produce requests with version {version} are only allowed to contain record batches"
            f" with magic version {MAGIC}"
        )
    return single_batch(records)


def _read_header(batch: BatchView, rules: BatchRules) -> ProducedBatch:
    header = batch.validate(size_bytes_max=rules.size_bytes_max)
    if rules.version < ZSTD_SINCE and batch.codec is Codec.ZSTD:
        raise UnsupportedCodecError("zstd needs Produce v7 or later")
    return ProducedBatch(batch, header)


def _with_max_timestamp(
    produced: ProducedBatch, rules: BatchRules, largest_ms: int
) -> ProducedBatch:
    """The batch with the largest timestamp of its records, which retention relies on.

    As in Kafka, a header with another one is corrected.
    """
    batch, header = produced
    if header.max_timestamp_ms == largest_ms or not rules.is_create_time:
        return produced
    batch.stamp_max_timestamp(largest_ms)
    return ProducedBatch(batch, header._replace(max_timestamp_ms=largest_ms))
