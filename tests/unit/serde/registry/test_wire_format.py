"""Tests of the wire format of schema registries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRecordError
from kafscale.serde.registry import wire_format


def zigzag(number):
    number = (number << 1) ^ (number >> 31)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@given(st.integers(0, 2**32 - 1), st.binary(max_size=20))
def test_split_and_join_of_schema_ids(schema_id, payload):
    value = b"\0" + schema_id.to_bytes(4, "big") + payload
    assert wire_format.split(value) == (schema_id, payload)
    assert wire_format.join(schema_id, payload) == value


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b"\1\0\0\0\1payload", b'{"a":1}'])
def test_split_rejects_values_without_a_header(value):
    with pytest.raises(InvalidRecordError, match="schema"):
        wire_format.split(value)


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=5), st.binary(max_size=20))
def test_split_and_join_of_message_indexes(indexes, payload):
    encoded = zigzag(len(indexes)) + b"".join(map(zigzag, indexes))
    assert wire_format.split_indexes(encoded + payload) == (tuple(indexes), payload)
    assert wire_format.split_indexes(wire_format.join_indexes(tuple(indexes), payload)) == (
        tuple(indexes),
        payload,
    )
    if indexes != [0]:
        assert wire_format.join_indexes(tuple(indexes), payload) == encoded + payload


def test_a_single_zero_is_the_first_message():
    assert wire_format.split_indexes(b"\0rest") == ((0,), b"rest")
    assert wire_format.join_indexes((0,), b"rest") == b"\0rest"


@pytest.mark.parametrize(
    "payload", [b"", b"\x80", b"\x04\x02", b"\xff" * 10, b"\x01\x00", b"\xfe\xff\x03"]
)
def test_invalid_message_indexes_are_rejected(payload):
    with pytest.raises(InvalidRecordError, match="message indexes"):
        wire_format.split_indexes(payload)
