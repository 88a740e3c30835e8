"""Whom snapshots are taken from."""

import asyncio

import pytest

from kafscale.admin.etcd.backups.source_selection import in_order, take_from_any
from kafscale.admin.etcd.backups.store import Snapshots
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import ObjectExistsError, StoreUnavailableError
from kafscale.storage.objects import MemoryObjectStore
from unit.operator.etcd.members import FakeMember, status, whole

GONE = -1
"""The leader of a member that does not answer."""


def test_followers_come_first_and_the_furthest_of_them():
    told = {
        "leader": status(member_id=1, revision=30),
        "follower": status(revision=10),
        "further": status(revision=20),
        "learner": status(is_learner=True),
        "lonely": status(leader_id=0),
        "silent": StoreUnavailableError("no answer"),
    }
    assert in_order(told) == ["further", "follower", "leader"]


def take(members):
    snapshots = Snapshots(MemoryObjectStore(), "prefix", lambda: 0)
    settings = Etcd(endpoints=tuple(members))
    return asyncio.run(take_from_any(snapshots, settings, lambda endpoint, _: members[endpoint]))


def test_one_follower_is_asked_and_everybody_is_left_again():
    members = {"a": FakeMember(member_id=1), "b": FakeMember(), "c": FakeMember(leader_id=GONE)}
    assert take(members).size_bytes == len(whole())
    assert [member.snapshots for member in members.values()] == [0, 1, 0]
    assert all(member.is_closed for member in members.values())


@pytest.mark.parametrize("bad", [FakeMember(breaks=True), FakeMember(whole()[:-1])])
def test_where_one_fails_in_the_middle_the_next_is_asked(bad):
    members = {"a": FakeMember(member_id=1), "b": bad}
    take(members)
    assert [member.snapshots for member in members.values()] == [1, 1]


def test_where_nobody_is_well_it_says_why_of_each():
    members = {
        "a": FakeMember(leader_id=0),
        "b": FakeMember(is_learner=True),
        "c": FakeMember(leader_id=GONE),
        "d": FakeMember(breaks=True),
    }
    with pytest.raises(StoreUnavailableError) as raised:
        take(members)
    for words in ("a: it knows no leader", "b: it is a learner", "c: it is gone", "it broke off"):
        assert words in str(raised.value)


def test_a_bucket_that_refuses_is_not_asked_again_for_every_member():
    async def body():
        store = MemoryObjectStore()
        await store.put("prefix/19700101T000000Z-17.db", [b"taken"])
        members = {"a": FakeMember(), "b": FakeMember()}
        with pytest.raises(ObjectExistsError):
            await take_from_any(
                Snapshots(store, "prefix", lambda: 0),
                Etcd(endpoints=("a", "b")),
                lambda endpoint, _: members[endpoint],
            )
        return sum(member.snapshots for member in members.values())

    assert asyncio.run(body()) == 1
