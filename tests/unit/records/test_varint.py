"""Variable-length integers: golden bytes, round trips, and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRecordError
from kafscale.records.varint import append_varint, append_varlong, read_varint, read_varlong

GOLDEN = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "encoded"), GOLDEN)
def test_known_values_have_known_bytes(value: int, encoded: str) -> None:
    output = bytearray()
    append_varint(output, value)
    assert output.hex() == encoded
    assert read_varint(bytes(output), 0) == (value, len(output))


@pytest.mark.parametrize(
    ("value", "encoded"), [(2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01")]
)
def test_widest_varlongs_take_ten_bytes(value: int, encoded: str) -> None:
    output = bytearray()
    append_varlong(output, value)
    assert output.hex() == encoded
    assert read_varlong(bytes(output), 0) == (value, 10)


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=4), st.binary(max_size=4))
def test_varint_round_trip_between_other_bytes(value: int, before: bytes, after: bytes) -> None:
    output = bytearray(before)
    append_varint(output, value)
    end = len(output)
    assert read_varint(bytes(output + after), len(before)) == (value, end)


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlong_round_trip(value: int) -> None:
    output = bytearray()
    append_varlong(output, value)
    assert read_varlong(bytes(output), 0) == (value, len(output))


def test_overlong_encoding_is_read() -> None:
    assert read_varint(bytes.fromhex("828000"), 0) == (1, 3)


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "ffffffff"])
def test_truncated_varint_is_rejected(encoded: str) -> None:
    with pytest.raises(InvalidRecordError, match="past the end"):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["808080808000", "ffffffff1f", "ffffffff7f", "ff" * 100])
def test_more_than_32_bits_are_rejected(encoded: str) -> None:
    with pytest.raises(InvalidRecordError, match="32 bits"):
        read_varint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("encoded", ["80" * 10 + "00", "ff" * 9 + "02", "ff" * 100])
def test_more_than_64_bits_are_rejected(encoded: str) -> None:
    with pytest.raises(InvalidRecordError, match="64 bits"):
        read_varlong(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_varint_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        append_varint(bytearray(), value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_varlong_out_of_range_is_not_written(value: int) -> None:
    with pytest.raises(InvalidRecordError, match="does not fit"):
        append_varlong(bytearray(), value)
