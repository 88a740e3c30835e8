"""The checksum in a snapshot, however the snapshot is cut into pieces."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.etcd.backups.checksum import SnapshotDigest


def whole(database):
    return database + hashlib.sha256(database).digest()


def digest_of(content, cuts=()):
    digest = SnapshotDigest()
    start = 0
    for stop in [*sorted(cuts), len(content)]:
        digest.update(content[start:stop])
        start = max(start, stop)
    return digest


@given(st.binary(min_size=1, max_size=200), st.lists(st.integers(0, 232), max_size=12))
def test_pieces_of_any_size_make_the_same_whole(database, cuts):
    content = whole(database)
    digest = digest_of(content, [min(cut, len(content)) for cut in cuts])
    assert digest.is_whole
    assert digest.size_bytes == len(content)
    assert digest.sha256 == hashlib.sha256(content).hexdigest()


@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_changed_byte_is_noticed(database, data):
    content = bytearray(whole(database))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    assert not digest_of(bytes(content)).is_whole


@given(st.binary(min_size=1, max_size=100), st.data())
def test_a_missing_end_is_noticed(database, data):
    content = whole(database)
    length = data.draw(st.integers(0, len(content) - 1))
    assert not digest_of(content[:length]).is_whole


@pytest.mark.parametrize("content", [b"", b"short", whole(b"")])
def test_nothing_is_no_snapshot(content):
    assert not digest_of(content).is_whole
