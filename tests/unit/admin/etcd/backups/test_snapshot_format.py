"""Keys and checksums of snapshots."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.etcd.backups import snapshot_format
from kafscale.admin.etcd.backups.snapshot_format import SnapshotChecksum, SnapshotName
from kafscale.storage.objects.store import is_key

names = st.builds(
    SnapshotName,
    st.integers(0, 253_402_300_799).map(lambda seconds: seconds * 1000),
    st.integers(0, 2**62),
)


@given(names)
def test_formatted_names_are_parsed(name):
    key = snapshot_format.database_key("snapshots/default.production", name)
    assert is_key(key)
    assert (
        snapshot_format.parse(key)
        == snapshot_format.parse(snapshot_format.description_key(key))
        == name
    )


@given(names, names)
def test_names_sort_by_time(one, other):
    if one.taken_at_ms < other.taken_at_ms:
        assert one < other
        assert str(one) < str(other)


@pytest.mark.parametrize(
    "key",
    [
        "a/access-probe",
        "a/20231114T221320Z-7",
        "a/20231114T221320Z-7.tmp",
        "a/20231114T221320Z-07.db",
        "a/20231314T221320Z-7.db",
        "a/20231114T221320-7.db",
        "a/20231114T221320Z-7.db.db",
        "a/20231114T221320Z-7.db/x",
    ],
)
def test_other_keys_are_not_parsed(key):
    assert snapshot_format.parse(key) is None


def test_directory_with_any_prefix():
    assert snapshot_format.directory("", "default", "one") == "default.one"
    assert (
        snapshot_format.directory("/backups/etcd/", "default", "one") == "backups/etcd/default.one"
    )


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
