"""Every stored record has a schema version; those of later versions are refused, not misread."""

import pytest

from fuzz.metadata import KINDS, Kind
from kafscale.errors import DamagedObjectError
from kafscale.metadata.store.base import Entry

VERSION_FIELD = 1000


def field(version: int) -> bytes:
    """The field on the wire."""
    tag = VERSION_FIELD << 3
    return bytes([tag & 0x7F | 0x80, tag >> 7, version])


def kinds():
    return pytest.mark.parametrize("kind", KINDS, ids=[kind.key for kind in KINDS])


@kinds()
def test_record_of_a_later_schema_version_is_refused(kind: Kind):
    value = kind.encode(kind.example)
    assert value.endswith(field(1))
    with pytest.raises(
        DamagedObjectError, match=r"has schema version 2, .* reads up to 1; upgrade"
    ):
        kind.decode(Entry(kind.key, value + field(2), 3, 5))


@kinds()
def test_record_without_a_schema_version_is_read(kind: Kind):
    value = kind.encode(kind.example)
    earlier = value.removesuffix(field(1))
    assert kind.decode(Entry(kind.key, earlier, 3, 5)) == kind.decode(Entry(kind.key, value, 3, 5))
