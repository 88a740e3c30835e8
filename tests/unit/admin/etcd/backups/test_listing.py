"""The choice of the member that snapshots are taken from."""

import asyncio

import pytest

from kafscale.admin.etcd.backups.listing import rank_sources, take_from_any
from kafscale.admin.etcd.backups.store import SnapshotStore
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import ObjectExistsError, StoreUnavailableError
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.operator.etcd.members import FakeMember, status, with_checksum

NO_RESPONSE = -1
"""The leader id of a member that does not respond."""


def test_followers_with_high_revisions_are_preferred():
    by_endpoint = {
        "leader": status(member_id=1, revision=30),
        "follower": status(revision=10),
        "further": status(revision=20),
        "learner": status(is_learner=True),
        "lonely": status(leader_id=0),
        "silent": StoreUnavailableError("no answer"),
    }
    assert rank_sources(by_endpoint) == ["further", "follower", "leader"]


def take(members):
    snapshots = SnapshotStore(MemoryObjectStore(), "prefix", lambda: 0)
    settings = Etcd(endpoints=tuple(members))
    return asyncio.run(take_from_any(snapshots, settings, lambda endpoint, _: members[endpoint]))


def test_one_follower_is_used_and_all_connections_are_closed():
    members = {
        "a": FakeMember(member_id=1),
        "b": FakeMember(),
        "c": FakeMember(leader_id=NO_RESPONSE),
    }
    assert take(members).size_bytes == len(with_checksum())
    assert [member.snapshots for member in members.values()] == [0, 1, 0]
    assert all(member.is_closed for member in members.values())


@pytest.mark.parametrize("bad", [FakeMember(fails=True), FakeMember(with_checksum()[:-1])])
def test_next_member_is_used_if_one_fails(bad):
    members = {"a": FakeMember(member_id=1), "b": bad}
    take(members)
    assert [member.snapshots for member in members.values()] == [1, 1]


def test_error_has_the_reason_of_each_member():
    members = {
        "a": FakeMember(leader_id=0),
        "b": FakeMember(is_learner=True),
        "c": FakeMember(leader_id=NO_RESPONSE),
        "d": FakeMember(fails=True),
    }
    with pytest.raises(StoreUnavailableError) as raised:
        take(members)
    for words in (
        "a: it has no leader",
        "b: it is a learner",
        "c: member is gone",
        "connection broke off",
    ):
        assert words in str(raised.value)


def test_bucket_errors_are_not_retried_with_other_members():
    async def body():
        store = MemoryObjectStore()
        await store.put("prefix/19700101T000000Z-17.db", [b"taken"])
        members = {"a": FakeMember(), "b": FakeMember()}
        with pytest.raises(ObjectExistsError):
            await take_from_any(
                SnapshotStore(store, "prefix", lambda: 0),
                Etcd(endpoints=("a", "b")),
                lambda endpoint, _: members[endpoint],
            )
        return sum(member.snapshots for member in members.values())

    assert asyncio.run(body()) == 1
