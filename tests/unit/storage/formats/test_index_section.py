"""Index sections: version and checksum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.storage.formats.index_section import decode_section, encode_section


@given(st.integers(0, 2**15 - 1), st.binary())
def test_section_round_trip(version, body):
    assert decode_section("key", version, encode_section(version, body)) == body


@pytest.mark.parametrize("bit", range(8 * 9))
def test_every_flipped_bit_in_a_section_is_rejected(bit):
    section = bytearray(encode_section(1, b"abc"))
    section[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedObjectError, match="key: "):
        decode_section("key", 1, section)
