"""Unsigned varints and tagged fields."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kafscale.errors import ProtocolError
from kafscale.protocol.codec import varint


@given(value=st.integers(0, 2**35 - 1), before=st.binary(max_size=3), after=st.binary(max_size=3))
@example(value=127, before=b"", after=b"")
@example(value=128, before=b"", after=b"")
@example(value=16383, before=b"", after=b"")
@example(value=16384, before=b"", after=b"\xff")
@example(value=2**21, before=b"", after=b"\xff")
@example(value=2**35 - 1, before=b"", after=b"\xff")
def test_varint_round_trips(value, before, after):
    encoded = varint.encode(value)
    view = memoryview(before + encoded + after)
    assert varint.decode(view, len(before)) == (value, len(before) + len(encoded))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_varint_is_little_endian_base_128(value, encoded):
    assert varint.encode(value).hex() == encoded


def test_overlong_varint_is_decoded():
    assert varint.decode(memoryview(b"\x81\x80\x00"), 0) == (1, 3)


def test_endless_varint_is_rejected():
    with pytest.raises(ProtocolError, match="longer than 5 bytes"):
        varint.decode(memoryview(b"\xff" * 20), 0)


@pytest.mark.parametrize("length", range(5))
def test_truncated_varint_raises_index_error(length):
    with pytest.raises(IndexError):
        varint.decode(memoryview(b"\xff" * length), 0)


def test_tagged_fields_are_written_with_number_and_size():
    written: list[bytes] = []
    varint.write_tags(written.append, [(0, b"a"), (200, b"bcd")])
    assert b"".join(written).hex() == "02000161c80103626364"


def test_tagged_fields_are_skipped():
    view = memoryview(bytes.fromhex("02000161c80103626364ff"))
    assert varint.skip_tags(view, 1, view[0]) == len(view) - 1
