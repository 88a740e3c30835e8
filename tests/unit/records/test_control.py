"""Markers of transactions: the bytes of Apache Kafka, and what else control batches may hold."""

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import BatchView, Codec, Record, build
from kafscale.records.batch import COUNT_POSITION
from kafscale.records.control import ControlType, EndMarker, build_end_marker, read_end_marker

# From MemoryRecords.withEndTransactionMarker of Apache Kafka 4.1.1.
OF_KAFKA = {
    ControlType.ABORT: "000000000000000000000042ffffffff02f6a74c5d0030000000000000018bcfe5687b00"
    "00018bcfe5687b0000000000001b580003ffffffff000000012000000008000000000c00000000000b00",
    ControlType.COMMIT: "000000000000000000000042ffffffff0202999a150030000000000000018bcfe5687b00"
    "00018bcfe5687b0000000000001b580003ffffffff000000012000000008000000010c00000000000b00",
}


@pytest.mark.parametrize("control_type", ControlType)
def test_markers_are_those_of_kafka(control_type: ControlType) -> None:
    marker = build_end_marker(7000, 3, control_type, 11, 1_700_000_000_123)
    assert marker.hex() == OF_KAFKA[control_type]
    BatchView(marker).validate(from_producer=False)


@given(
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**15 - 1),
    st.sampled_from(ControlType),
    st.integers(-1, 2**31 - 1),
)
def test_markers_are_read_as_they_were_built(
    producer_id: int, epoch: int, control_type: ControlType, coordinator_epoch: int
) -> None:
    batch = BatchView(build_end_marker(producer_id, epoch, control_type, coordinator_epoch, 1000))
    assert read_end_marker(batch) == EndMarker(control_type, coordinator_epoch)
    assert (batch.producer_id, batch.producer_epoch) == (producer_id, epoch)


def control(key: bytes | None, value: bytes | None, **flags: bool | Codec) -> BatchView:
    return BatchView(build([Record(0, 0, key, value)], **{"control": True, **flags}))


COMMIT = EndMarker(ControlType.COMMIT, 5)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (control(pack(">hh", 0, 1), pack(">hi", 0, 5)), COMMIT),
        (control(pack(">hh", 0, 1), pack(">hi", 0, 5), codec=Codec.ZSTD), COMMIT),
        # Later versions may add fields.
        (control(pack(">hhi", 1, 1, 9), pack(">hii", 1, 5, 9)), COMMIT),
        # A change of a KRaft leader.
        (control(pack(">hh", 0, 2), pack(">hi", 0, 5)), None),
        (control(pack(">hh", -1, 1), pack(">hi", 0, 5)), None),
        (control(pack(">h", 0), pack(">hi", 0, 5)), None),
        (control(pack(">hh", 0, 1), pack(">h", 0)), None),
        (control(None, None), None),
        (control(pack(">hh", 0, 1), pack(">hi", 0, 5), control=False), None),
    ],
)
def test_other_control_batches_end_no_transaction(
    batch: BatchView, expected: EndMarker | None
) -> None:
    assert read_end_marker(batch) == expected


def test_compacted_and_damaged_control_batches_end_no_transaction() -> None:
    marker = build_end_marker(1, 0, ControlType.ABORT, 0, 0)
    empty = marker[:61]
    empty[8:12] = pack(">i", len(empty) - 12)
    empty[COUNT_POSITION : COUNT_POSITION + 4] = bytes(4)
    assert read_end_marker(BatchView(empty)) is None
    marker[-15] = 0xFF
    assert read_end_marker(BatchView(marker)) is None
