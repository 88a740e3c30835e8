"""Building batches: the header that the records ask for, and records that cannot be built."""

import pytest

from kafscale.errors import InvalidRecordError
from kafscale.records import BatchView, Codec, Record, TimestampType, build
from unit.records.examples import RECORDS


def test_the_plain_batch_says_nothing_of_producers() -> None:
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


def test_the_first_record_gives_the_base_and_the_latest_the_maximum() -> None:
    records = [
        Record(40, 500, None, b"a"),
        Record(41, 900, None, b"b"),
        Record(42, 100, None, b"c"),
    ]
    batch = BatchView(build(records))
    assert (batch.base_offset, batch.last_offset_delta, batch.count) == (40, 2, 3)
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (500, 900)


def test_no_records_make_no_batch() -> None:
    with pytest.raises(InvalidRecordError, match="at least one"):
        build([])


@pytest.mark.parametrize("second", [0, 4, 5])
def test_offsets_must_ascend(second: int) -> None:
    with pytest.raises(InvalidRecordError, match="comes after 5"):
        build([Record(5, 0, None, None), Record(second, 0, None, None)])


def test_offsets_must_lie_within_reach_of_the_base() -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        build([Record(0, 0, None, None), Record(2**31, 0, None, None)])


def test_timestamps_must_lie_within_reach_of_the_first() -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        build([Record(0, -(2**63), None, None), Record(1, 2**63 - 1, None, None)])
