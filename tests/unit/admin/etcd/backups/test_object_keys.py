"""Formatting and parsing of snapshot keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.admin.etcd.backups import object_keys
from kafscale.admin.etcd.backups.object_keys import SnapshotName
from kafscale.storage.objects.store import is_key

names = st.builds(
    SnapshotName,
    st.integers(0, 253_402_300_799).map(lambda seconds: seconds * 1000),
    st.integers(0, 2**62),
)


@given(names)
def test_formatted_names_are_parsed(name):
    key = object_keys.database_key("snapshots/default.production", name)
    assert is_key(key)
    assert object_keys.parse(key) == object_keys.parse(object_keys.description_key(key)) == name


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
    assert object_keys.parse(key) is None


def test_directory_with_any_prefix():
    assert object_keys.directory("", "default", "one") == "default.one"
    assert object_keys.directory("/backups/etcd/", "default", "one") == "backups/etcd/default.one"
