"""The checksum of a snapshot, for any chunk sizes."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.etcd.backups.checksum import SnapshotChecksum


def with_checksum(database):
    return database + hashlib.sha256(database).digest()


def checksum_of(content, cuts=()):
    checksum = SnapshotChecksum()
    start = 0
    for stop in [*sorted(cuts), len(content)]:
        checksum.update(content[start:stop])
        start = max(start, stop)
    return checksum


@given(st.binary(min_size=1, max_size=200), st.lists(st.integers(0, 232), max_size=12))
def test_checksum_is_valid_for_any_chunk_sizes(database, cuts):
    content = with_checksum(database)
    checksum = checksum_of(content, [min(cut, len(content)) for cut in cuts])
    assert checksum.is_valid
    assert checksum.size_bytes == len(content)
    assert checksum.sha256 == hashlib.sha256(content).hexdigest()


@given(st.binary(min_size=1, max_size=100), st.data())
def test_changed_byte_is_detected(database, data):
    content = bytearray(with_checksum(database))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    assert not checksum_of(bytes(content)).is_valid


@given(st.binary(min_size=1, max_size=100), st.data())
def test_truncation_is_detected(database, data):
    content = with_checksum(database)
    length = data.draw(st.integers(0, len(content) - 1))
    assert not checksum_of(content[:length]).is_valid


@pytest.mark.parametrize("content", [b"", b"short", with_checksum(b"")])
def test_empty_content_is_invalid(content):
    assert not checksum_of(content).is_valid
