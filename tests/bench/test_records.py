"""The cost of a batch on the produce path: validated and stamped at 1 GB/s or more."""

from functools import partial
from typing import Any

import pytest

from kafscale.records import BatchView, Codec, Record, build, iterate, recompress, single_batch
from kafscale.records.validation import RecordRules, validate_inline, validate_records

pytestmark = pytest.mark.bench

BATCH_BYTES = 256 * 1024
RECORD_COUNT = 256
BYTES_PER_SECOND_MIN = 1_000_000_000
RULES = RecordRules(timestamp_max_ms=2**62)


def batch_of(size_bytes: int, count: int) -> bytearray:
    """A batch of about this size, with records that compress moderately."""
    words = b" ".join(b"%d" % number for number in range(size_bytes // count // 3))
    value = words[: size_bytes // count - 20]
    return build([Record(index, 1_700_000_000_000 + index, None, value) for index in range(count)])


def accept(data: bytearray) -> None:
    """All work on a batch between its request frame and the WAL buffer."""
    batch = single_batch(data)
    header = batch.validate(size_bytes_max=1_048_588)
    assert validate_inline(batch, header, RULES) is not None
    batch.stamp(123_456_789, 4)


def test_validation_speed(bench: Any) -> None:
    data = batch_of(BATCH_BYTES, RECORD_COUNT)
    assert abs(len(data) - BATCH_BYTES) < BATCH_BYTES // 50
    seconds = bench.measure(
        "validate a batch of 256 KiB", lambda: BatchView(data).validate(), size_bytes=len(data)
    )
    assert len(data) / seconds >= BYTES_PER_SECOND_MIN


def test_acceptance_speed(bench: Any) -> None:
    for name, size_bytes, count in (
        ("256 KiB", BATCH_BYTES, RECORD_COUNT),
        ("16 KiB in 16 records", 16384, 16),
        ("16 KiB in 150 records", 16384, 150),
        ("1 KiB", 1024, 8),
    ):
        data = batch_of(size_bytes, count)
        seconds = bench.measure(
            f"accept a batch of {name}", partial(accept, data), size_bytes=len(data)
        )
        assert seconds < 0.001


def test_speed_of_compressed_batches(bench: Any) -> None:
    """What a producer's compression costs the broker, which decompresses each batch once."""
    for codec in list(Codec)[1:]:
        batch = BatchView(recompress(BatchView(batch_of(BATCH_BYTES, RECORD_COUNT)), codec))
        seconds = bench.measure(
            f"validate 256 KiB of records, {codec.name.lower()}",
            partial(validate_records, batch, batch.header(), RULES),
            size_bytes=BATCH_BYTES,
        )
        assert seconds < 0.01


def test_speed_at_the_edges(bench: Any) -> None:
    """Work per record, which is not on the produce path; for comparison."""
    for codec in Codec:
        batch = BatchView(recompress(BatchView(batch_of(BATCH_BYTES, RECORD_COUNT)), codec))
        records = list(iterate(batch))
        seconds = bench.measure(
            f"read {RECORD_COUNT} records of 1 KiB, {codec.name.lower()}",
            lambda batch=batch: list(iterate(batch)),
            number=20,
        )
        assert seconds < 0.1
        seconds = bench.measure(
            f"build {RECORD_COUNT} records of 1 KiB, {codec.name.lower()}",
            lambda records=records, codec=codec: build(records, codec=codec),
            number=20,
        )
        assert seconds < 0.1
