"""Building and recompressing batches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import InvalidRecordError
from kafscale.records import BatchView, Codec, Record, TimestampType, build, iterate, recompress
from unit.records.examples import RECORDS, example, record_lists


def test_default_batch_has_no_producer_fields() -> None:
    batch = BatchView(build(RECORDS))
    assert batch.attributes == 0
    assert batch.leader_epoch == -1
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("flags", "attributes"),
    [
        ({"codec": Codec.ZSTD}, 0x04),
        ({"timestamp_type": TimestampType.LOG_APPEND_TIME}, 0x08),
        ({"transactional": True}, 0x10),
        ({"control": True}, 0x20),
        ({"codec": Codec.LZ4, "transactional": True, "control": True}, 0x33),
    ],
)
def test_flags_become_attribute_bits(flags: dict[str, int], attributes: int) -> None:
    assert BatchView(build(RECORDS, **flags)).attributes == attributes


def test_base_and_max_timestamps_are_set() -> None:
    records = [
        Record(40, 500, None, b"a"),
        Record(41, 900, None, b"b"),
        Record(42, 100, None, b"c"),
    ]
    batch = BatchView(build(records))
    assert (batch.base_offset, batch.last_offset_delta, batch.count) == (40, 2, 3)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (500, 900)


def test_empty_batch_is_rejected() -> None:
    with pytest.raises(InvalidRecordError, match="at least one"):
        build([])


@pytest.mark.parametrize("second", [0, 4, 5])
def test_offsets_must_ascend(second: int) -> None:
    with pytest.raises(InvalidRecordError, match=f"do not ascend: {second} after 5"):
        build([Record(5, 0, None, None), Record(second, 0, None, None)])


def test_offset_deltas_must_fit_32_bits() -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        build([Record(0, 0, None, None), Record(2**31, 0, None, None)])


def test_timestamp_deltas_must_fit_64_bits() -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        build([Record(0, -(2**63), None, None), Record(1, 2**63 - 1, None, None)])


@given(
    records=record_lists(),
    before=st.sampled_from(Codec),
    after=st.sampled_from(Codec),
    producer_id=st.integers(-1, 2**63 - 1),
    transactional=st.booleans(),
)
@settings(max_examples=100)
def test_recompress_changes_only_the_codec(
    records: list[Record], before: Codec, after: Codec, producer_id: int, transactional: bool
) -> None:
    created = build(
        records,
        codec=before,
        producer_id=producer_id,
        producer_epoch=7,
        base_sequence=8,
        leader_epoch=9,
        transactional=transactional,
    )
    batch = BatchView(recompress(BatchView(created), after))
    batch.validate()
    assert batch.codec is after
    assert list(iterate(batch)) == records
    # All of the header but length, checksum and the codec's three bits.
    for span in (slice(8), slice(12, 17), slice(23, 61)):
        assert batch.buffer[span] == created[span]
    assert batch.attributes & ~7 == BatchView(created).attributes & ~7


def test_recompress_keeps_log_append_time() -> None:
    batch = example()
    batch.stamp(1000, 3)
    batch.stamp_append_time(1_800_000_000_000)
    packed = BatchView(recompress(batch, Codec.SNAPPY))
    packed.validate(from_producer=False)
    assert list(iterate(packed)) == list(iterate(batch))


def test_recompress_does_not_change_its_input() -> None:
    data = bytes(build(RECORDS))
    recompress(BatchView(data), Codec.GZIP)
    assert data == build(RECORDS)
