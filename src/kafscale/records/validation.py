"""Validates the records of a batch that a producer has sent.

Without this, one batch of garbage would stop all consumers of its partition, because they cannot
read beyond it. `BatchView.validate` checks the header before; `scan` reads the records, and this
module decides about them, with the errors and texts of Kafka.

Invariant: decompression is limited; what the limit refuses is not stored.
"""

from typing import Final

import msgspec

from kafscale.errors import BatchTooLargeError, InvalidRecordError, InvalidTimestampError
from kafscale.records.batch import NO_TIMESTAMP, BatchHeader, BatchView
from kafscale.records.compression import CODEC_MASK, DECOMPRESSED_BYTES_MAX, decompress_view
from kafscale.records.scan import INT64_MAX, INT64_MIN, RecordScan, is_compiled
from kafscale.text.topic_partition import TopicPartition

INLINE_STEPS: Final = 50_000 if is_compiled() else 400
"""How many records and headers may be read on an event loop: they take a millisecond."""
INLINE_COMPRESSED_BYTES_MAX: Final = 32 * 1024
INLINE_DECOMPRESSED_BYTES_MAX: Final = 256 * 1024
"""gzip, the slowest codec, decompresses that much in a millisecond."""

NAMED_MAX: Final = 3
"""How many refused records the text of an error names; the response has more."""

_KEY_REASON: Final = "Compacted topic cannot accept message without key in topic partition {}-{}"
_TIMESTAMP_REASON: Final = (
    "Timestamp {} of message with offset {} is out of range. The timestamp should be within"
    " [{}, {}]"
)


class RecordRules(msgspec.Struct, frozen=True, gc=False):
    """What a topic requires of every record."""

    topic_partition: TopicPartition = ("", 0)
    """For the texts of errors."""
    requires_keys: bool = False
    """Whether records without a key are refused, because the topic is compacted."""
    timestamp_min_ms: int = INT64_MIN
    timestamp_max_ms: int = INT64_MAX


def validate_inline(batch: BatchView, header: BatchHeader, rules: RecordRules) -> int | None:
    """`validate_records` for an event loop; None without a result if it would take too long."""
    records = batch.payload
    if header.attributes & CODEC_MASK:
        if len(records) > INLINE_COMPRESSED_BYTES_MAX:
            return None
        try:
            records = decompress_view(batch.codec, records, INLINE_DECOMPRESSED_BYTES_MAX)
        except BatchTooLargeError:
            return None
    scan = _scan(records, header, rules)
    return None if scan.advance(INLINE_STEPS) else _checked(scan, header, rules)


def validate_records(
    batch: BatchView,
    header: BatchHeader,
    rules: RecordRules,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> int:
    """Raise unless all records may be stored; return their largest timestamp."""
    records = decompress_view(batch.codec, batch.payload, decompressed_bytes_max)
    scan = _scan(records, header, rules)
    while scan.advance(INLINE_STEPS):
        pass  # Between two steps, other threads run.
    return _checked(scan, header, rules)


def _scan(records: memoryview, header: BatchHeader, rules: RecordRules) -> RecordScan:
    base_ms = header.base_timestamp_ms
    # Deltas such that the timestamp fits 64 bits, whatever the rules.
    delta_min = max(rules.timestamp_min_ms, INT64_MIN + max(base_ms, 0)) - base_ms
    delta_max = min(rules.timestamp_max_ms, INT64_MAX + min(base_ms, 0)) - base_ms
    if base_ms == NO_TIMESTAMP:
        delta_min = min(delta_min, 0)  # Records without a timestamp are accepted, as in Kafka.
    if delta_min > INT64_MAX or delta_max < INT64_MIN:
        delta_min, delta_max = INT64_MAX, INT64_MIN  # No delta leads to an allowed timestamp.
    return RecordScan(
        records,
        header.record_count,
        rules.requires_keys,
        max(delta_min, INT64_MIN),
        min(delta_max, INT64_MAX),
    )


def _checked(scan: RecordScan, header: BatchHeader, rules: RecordRules) -> int:
    """Raise if records were refused; return their largest timestamp."""
    if scan.out_of_range or scan.without_key:
        raise _refused(scan, header.base_timestamp_ms, rules)
    return header.base_timestamp_ms + scan.largest_timestamp_delta


def _refused(
    scan: RecordScan, base_ms: int, rules: RecordRules
) -> InvalidTimestampError | InvalidRecordError:
    """The error for a batch, which names its refused records in order.

    As in Kafka, the timestamp of a record without a key is not checked, and one timestamp out of
    range decides about the error of the batch.
    """
    topic, partition = rules.topic_partition
    limits = (rules.timestamp_min_ms, rules.timestamp_max_ms)
    reasons = {
        index: _TIMESTAMP_REASON.format(base_ms + delta, index, *limits)
        for index, delta in scan.out_of_range
    }
    keyless = dict.fromkeys(scan.without_key, _KEY_REASON.format(topic, partition))
    error: InvalidTimestampError | InvalidRecordError
    if reasons.keys() - keyless.keys():
        error = InvalidTimestampError(
            "One or more records have been rejected due to invalid timestamp"
        )
    else:
        first = [
            f"RecordError(batchIndex={index}, message='{reason}')"
            for index, reason in list(keyless.items())[:NAMED_MAX]
        ]
        error = InvalidRecordError(
            f"One or more records have been rejected due to {len(keyless)} record errors in total,"
            f" and only showing the first three errors at most: [{', '.join(first)}]"
        )
    error.record_errors = sorted((reasons | keyless).items())
    return error
