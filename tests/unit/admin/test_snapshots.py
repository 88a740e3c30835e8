"""Snapshots in a bucket: what counts is whole, and what is not whole never counts."""

import asyncio
import hashlib
import json
from random import Random

import pytest

from kafscale.admin.etcd.backups.store import ABANDONED_MS, PIECE_BYTES, Snapshots, SourceError
from kafscale.errors import DamagedObjectError, ObjectExistsError, OperatingError
from kafscale.storage.objects import MemoryObjectStore
from kafscale.testing.faulty_object_store import Fault, FaultyObjectStore, Rule
from unit.operator.etcd.members import DATABASE, FakeMember, whole

PREFIX = "etcd-snapshots/default.production"
NOON_MS = 1_700_000_000_000
KEY = f"{PREFIX}/20231114T221320Z-17.db"


class Clock:
    def __init__(self):
        self.now_ms = NOON_MS + 123

    def __call__(self):
        return self.now_ms


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return MemoryObjectStore(clock)


@pytest.fixture
def snapshots(store, clock):
    return Snapshots(store, f"{PREFIX}/", clock)


def refusing(store, operation, keys="*"):
    """The same store, which refuses one operation on some keys."""
    rule = Rule(fault=Fault.REFUSED, operations=frozenset({operation}), keys=keys)
    return FaultyObjectStore(store, [rule], random=Random(0))


def keys_of(store):
    async def listed():
        return [info.key async for chunk in store.list("etcd-snapshots/") for info in chunk]

    return asyncio.run(listed())


def take(snapshots, clock, count):
    """So many, an hour apart."""

    async def taken():
        for _ in range(count):
            await snapshots.take(FakeMember())
            clock.now_ms += 3_600_000

    asyncio.run(taken())


def test_one_that_is_taken_is_stored_described_and_fetched(snapshots, store, tmp_path):
    progress = []

    async def body():
        taken = await snapshots.take(FakeMember(), lambda *told: progress.append(told))
        assert taken == await snapshots.newest()
        return taken, await snapshots.fetch(taken.key, tmp_path / "fetched.db")

    taken, described = asyncio.run(body())
    assert (taken.key, taken.taken_at_ms, taken.size_bytes) == (KEY, NOON_MS, len(whole()))
    assert (tmp_path / "fetched.db").read_bytes() == whole()
    assert json.loads(bytes(asyncio.run(store.get(KEY.replace(".db", ".json"))))) == {
        "sha256": hashlib.sha256(whole()).hexdigest(),
        "sizeBytes": len(whole()),
        "revision": 17,
        "etcdVersion": "3.6.5",
        "clusterId": "c0ffee",
        "takenAt": "2023-11-14T22:13:20.123Z",
    }
    assert described.revision == 17
    assert progress[-1] == (len(whole()), len(whole()))


def test_one_of_many_pieces_goes_up_and_comes_down_in_pieces(snapshots, tmp_path):
    content = whole(b"x" * (2 * PIECE_BYTES + 5))

    async def body():
        taken = await snapshots.take(FakeMember(content, piece_bytes=100_000))
        await snapshots.fetch(taken.key, tmp_path / "fetched.db")

    asyncio.run(body())
    assert (tmp_path / "fetched.db").read_bytes() == content


@pytest.mark.parametrize(
    "member",
    [
        FakeMember(whole()[:-1]),
        FakeMember(b"!" + whole()[1:]),
        FakeMember(b""),
        FakeMember(breaks=True),
        FakeMember(leader_id=-1),
    ],
    ids=["cut off", "changed", "empty", "broken off", "gone"],
)
def test_what_did_not_come_whole_is_not_stored(snapshots, store, member):
    with pytest.raises(SourceError):
        asyncio.run(snapshots.take(member))
    assert keys_of(store) == []


def test_without_its_description_it_does_not_count(store, clock):
    """As if the operator had died in between: the description is what is written last."""
    snapshots = Snapshots(refusing(store, "put", "*.json"), PREFIX, clock)

    async def body():
        with pytest.raises(OperatingError):
            await snapshots.take(FakeMember())
        with pytest.raises(OperatingError, match="none that was finished"):
            await snapshots.describe(KEY)
        return await snapshots.list(), await snapshots.newest()

    assert asyncio.run(body()) == ([], None)
    assert keys_of(store) == [KEY]


def test_two_operators_in_the_same_second_do_not_mix_their_snapshots(snapshots):
    async def body():
        first = await snapshots.take(FakeMember())
        with pytest.raises(ObjectExistsError):
            await snapshots.take(FakeMember(whole(DATABASE + b"other")))
        return await snapshots.verify(first.key)

    assert asyncio.run(body()).size_bytes == len(whole())


@pytest.mark.parametrize("content", [whole()[:-1], b"!" + whole()[1:], whole() + b"!"])
def test_one_that_has_changed_since_is_refused(snapshots, store, tmp_path, content):
    async def body():
        taken = await snapshots.take(FakeMember())
        await store.put(taken.key, [content], create=False)
        with pytest.raises(DamagedObjectError):
            await snapshots.verify(taken.key)
        await snapshots.fetch(taken.key, tmp_path / "fetched.db")

    with pytest.raises(DamagedObjectError):
        asyncio.run(body())


def test_a_description_that_is_none_is_told(snapshots, store):
    async def body():
        taken = await snapshots.take(FakeMember())
        await store.put(taken.key.replace(".db", ".json"), [b"{}"], create=False)
        await snapshots.describe(taken.key)

    with pytest.raises(DamagedObjectError, match=r"\.json: .*missing required field"):
        asyncio.run(body())


def test_only_the_newest_are_retained(snapshots, clock, store):
    take(snapshots, clock, 5)
    before = [each.key for each in asyncio.run(snapshots.list())]
    assert before == sorted(before)
    assert asyncio.run(snapshots.prune(2)) == before[:3]
    assert [each.key for each in asyncio.run(snapshots.list())] == before[3:]
    assert len(keys_of(store)) == 4
    assert asyncio.run(snapshots.prune(2)) == []


def test_a_description_goes_before_its_database(store, clock):
    """Were it the other way round, a death in between would leave one that counts and is gone."""
    take(Snapshots(store, PREFIX, clock), clock, 2)
    with pytest.raises(OperatingError):
        asyncio.run(Snapshots(refusing(store, "delete", "*.db"), PREFIX, clock).prune(1))
    remaining = Snapshots(store, PREFIX, clock)
    assert len(asyncio.run(remaining.list())) == 1
    assert KEY in keys_of(store)
    clock.now_ms += 2 * ABANDONED_MS
    assert asyncio.run(remaining.prune(1)) == [KEY]


def test_what_was_never_finished_is_deleted_once_nobody_can_be_at_it(snapshots, store, clock):
    take(snapshots, clock, 1)
    lost = f"{PREFIX}/20231114T231320Z-18.db"
    others = [f"{PREFIX}/notes.txt", f"{PREFIX}2/20231114T231320Z-18.db", f"{PREFIX}/x/{KEY[-22:]}"]

    async def put():
        for key in [lost, *others]:
            await store.put(key, [b"something"])

    asyncio.run(put())
    clock.now_ms += ABANDONED_MS
    assert asyncio.run(snapshots.prune(1)) == []
    clock.now_ms += 1
    assert asyncio.run(snapshots.prune(1)) == [lost]
    assert set(others) <= set(keys_of(store))
    assert len(asyncio.run(snapshots.list())) == 1


def test_one_is_found_by_its_key_its_name_and_as_the_latest(snapshots, clock):
    with pytest.raises(OperatingError, match=f"there is no snapshot below {PREFIX}/"):
        asyncio.run(snapshots.find("latest"))
    take(snapshots, clock, 2)
    latest = f"{PREFIX}/20231114T231320Z-17.db"
    for wanted in ("latest", latest, latest.rpartition("/")[2]):
        assert asyncio.run(snapshots.find(wanted)) == latest


def test_access_is_tried_and_leaves_nothing(snapshots, store):
    asyncio.run(snapshots.check_access())
    assert keys_of(store) == []


@pytest.mark.parametrize("operation", ["put", "get", "delete"])
def test_access_that_lacks_something_is_told(store, clock, operation):
    with pytest.raises(OperatingError):
        asyncio.run(Snapshots(refusing(store, operation), PREFIX, clock).check_access())


def test_a_spool_that_is_not_there_is_told(store, clock, tmp_path):
    snapshots = Snapshots(store, PREFIX, clock, spool=str(tmp_path / "absent"))
    with pytest.raises(OperatingError, match=r"finds no room in .*absent"):
        asyncio.run(snapshots.take(FakeMember()))
