"""Names of snapshots: what is written is read back, and nothing else is taken for one."""

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
def test_what_is_written_is_read_back(name):
    key = object_keys.database_key("snapshots/default.production", name)
    assert is_key(key)
    assert object_keys.parse(key) == object_keys.parse(object_keys.description_key(key)) == name


@given(names, names)
def test_names_are_in_the_order_of_time(one, other):
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
def test_other_objects_are_no_snapshots(key):
    assert object_keys.parse(key) is None


def test_a_prefix_may_be_empty_or_deep():
    assert object_keys.directory("", "default", "one") == "default.one"
    assert object_keys.directory("/backups/etcd/", "default", "one") == "backups/etcd/default.one"
