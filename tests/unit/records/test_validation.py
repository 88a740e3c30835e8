"""Validation of produced records: rules of the topic, and what is left to a thread."""

from contextlib import nullcontext

import pytest

from kafscale.errors import BatchTooLargeError, CorruptBatchError, InvalidTimestampError
from kafscale.records import BatchView, Codec, Header, Record, build
from kafscale.records.batch import BASE_TIMESTAMP_POSITION, HEADER_BYTES, LENGTH_POSITION
from kafscale.records.scan import INT64_MAX, INT64_MIN
from kafscale.records.validation import (
    INLINE_COMPRESSED_BYTES_MAX,
    INLINE_DECOMPRESSED_BYTES_MAX,
    INLINE_STEPS,
    RecordRules,
    validate_inline,
    validate_records,
)
from unit.records.examples import rewritten

ANY = RecordRules()


def batch_of(*timestamps_ms: int, value: bytes = b"", codec: Codec = Codec.NONE) -> BatchView:
    records = [Record(n, each, b"key", value) for n, each in enumerate(timestamps_ms)]
    return BatchView(build(records, codec=codec))


@pytest.mark.parametrize("base_ms", [INT64_MIN, -1, 0, 1, INT64_MAX])
@pytest.mark.parametrize("later_ms", [-1, 0, 1])
def test_timestamps_have_64_bits(base_ms: int, later_ms: int) -> None:
    batch = rewritten(batch_of(1000, 1000 + later_ms), BASE_TIMESTAMP_POSITION, ">q", base_ms)
    fits = INT64_MIN <= base_ms + later_ms <= INT64_MAX and (base_ms != -1 or later_ms >= 0)
    with nullcontext() if fits or base_ms == -1 else pytest.raises(InvalidTimestampError):
        assert validate_records(batch, batch.header(), ANY) == max(base_ms, base_ms + later_ms)


@pytest.mark.parametrize(
    ("base_ms", "rules"),
    [
        (INT64_MIN, RecordRules(timestamp_min_ms=1000)),
        (INT64_MAX, RecordRules(timestamp_max_ms=-1000)),
    ],
)
@pytest.mark.parametrize("delta_ms", [INT64_MIN, 0, INT64_MAX])
def test_no_delta_is_accepted_if_the_base_timestamp_is_too_far(
    base_ms: int, rules: RecordRules, delta_ms: int
) -> None:
    """The limits of the deltas exceed the 64 bits of the compiled scan."""
    record = Record(1, delta_ms, b"key", b"")
    built = BatchView(build([Record(0, 0, b"key", b""), record]))
    batch = rewritten(built, BASE_TIMESTAMP_POSITION, ">q", base_ms)
    for validate in (validate_inline, validate_records):
        with pytest.raises(InvalidTimestampError) as raised:
            validate(batch, batch.header(), rules)
        assert raised.value.record_errors


@pytest.mark.parametrize("codec", list(Codec)[1:], ids=lambda codec: codec.name)
def test_large_batches_are_left_to_a_thread(codec: Codec) -> None:
    value = bytes(INLINE_DECOMPRESSED_BYTES_MAX // 2)
    small, large = (batch_of(*[1] * n, value=value, codec=codec) for n in (1, 3))
    assert validate_inline(small, small.header(), ANY) == 1
    assert validate_inline(large, large.header(), ANY) is None
    assert validate_records(large, large.header(), ANY) == 1
    with pytest.raises(BatchTooLargeError):
        validate_records(large, large.header(), ANY, decompressed_bytes_max=len(value))


@pytest.mark.parametrize("has_headers", [False, True])
def test_many_records_or_headers_are_left_to_a_thread(has_headers: bool) -> None:
    headers = (Header("", None),) * INLINE_STEPS
    records = [Record(0, 1, None, None, headers)]
    if not has_headers:
        records = [Record(n, 1, None, None) for n in range(INLINE_STEPS + 1)]
    batch = BatchView(build(records))
    assert validate_inline(batch, batch.header(), ANY) is None
    assert validate_records(batch, batch.header(), ANY) == 1


@pytest.mark.parametrize("size_bytes", [100, INLINE_COMPRESSED_BYTES_MAX])
@pytest.mark.parametrize("codec", list(Codec)[1:], ids=lambda codec: codec.name)
def test_garbage_in_a_compressed_batch_is_corrupt(codec: Codec, size_bytes: int) -> None:
    batch = batch_of(1, codec=codec)
    data = bytearray(batch.buffer[:HEADER_BYTES]) + b"\xff" * size_bytes
    data[LENGTH_POSITION : LENGTH_POSITION + 4] = (len(data) - 12).to_bytes(4, "big")
    damaged = BatchView(data)
    with pytest.raises(CorruptBatchError):
        validate_records(damaged, damaged.header(), ANY)
