"""Control batches: end markers (KIP-98)."""

import pytest

from kafscale.errors import InvalidRecordError
from kafscale.records import BatchView, ControlType, Record, build_end_marker, control_type, iterate


@pytest.mark.parametrize(
    ("kind", "key"), [(ControlType.ABORT, "00000000"), (ControlType.COMMIT, "00000001")]
)
def test_end_marker_is_a_transactional_control_batch_with_one_record(
    kind: ControlType, key: str
) -> None:
    data = build_end_marker(
        kind, offset=88, timestamp_ms=123, producer_id=5, producer_epoch=6, coordinator_epoch=7
    )
    batch = BatchView(data)
    batch.validate(from_producer=False)
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 6, -1)
    (record,) = iterate(batch)
    assert record == Record(88, 123, bytes.fromhex(key), bytes.fromhex("000000000007"))
    assert control_type(record) is kind


def test_other_control_types_are_none() -> None:
    assert control_type(Record(0, 0, bytes.fromhex("00000002"), b"")) is None


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00"])
def test_short_key_is_invalid(key: bytes | None) -> None:
    with pytest.raises(InvalidRecordError, match="too short"):
        control_type(Record(0, 0, key, b""))
