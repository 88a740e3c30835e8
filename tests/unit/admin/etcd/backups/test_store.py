"""Snapshots in a bucket: complete ones are intact, and incomplete ones are ignored."""

import asyncio
import hashlib
import json
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.admin.etcd.backups.store import ABANDONED_MS, CHUNK_BYTES, SnapshotStore, SourceError
from kafscale.errors import DamagedObjectError, ObjectExistsError, OperatingError
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.operator.etcd.members import DATABASE, FakeMember, with_checksum

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
    return SnapshotStore(store, f"{PREFIX}/", clock)


def failing(store, operation, keys="*"):
    """The same store, in which one operation fails for some keys."""
    rule = Rule(fault=Fault.REFUSED, operations=frozenset({operation}), keys=keys)
    return FaultyObjectStore(store, [rule], random=Random(0))


def keys_of(store):
    async def listed():
        return [info.key async for chunk in store.list("etcd-snapshots/") for info in chunk]

    return asyncio.run(listed())


def take(snapshots, clock, count):
    """Take `count` snapshots, an hour apart."""

    async def take_all():
        for _ in range(count):
            await snapshots.take(FakeMember())
            clock.now_ms += 3_600_000

    asyncio.run(take_all())


def test_snapshot_is_stored_described_and_fetched(snapshots, store, tmp_path):
    progress = []

    async def body():
        taken = await snapshots.take(FakeMember(), lambda *amounts: progress.append(amounts))
        assert taken == await snapshots.newest()
        return taken, await snapshots.fetch(taken.key, tmp_path / "fetched.db")

    taken, described = asyncio.run(body())
    assert (taken.key, taken.taken_at_ms, taken.size_bytes) == (KEY, NOON_MS, len(with_checksum()))
    assert (tmp_path / "fetched.db").read_bytes() == with_checksum()
    assert json.loads(bytes(asyncio.run(store.get(KEY.replace(".db", ".json"))))) == {
        "sha256": hashlib.sha256(with_checksum()).hexdigest(),
        "sizeBytes": len(with_checksum()),
        "revision": 17,
        "etcdVersion": "3.6.5",
        "clusterId": "c0ffee",
        "takenAt": "2023-11-14T22:13:20.123Z",
    }
    assert described.revision == 17
    assert progress[-1] == (len(with_checksum()), len(with_checksum()))


def test_large_snapshot_is_transferred_in_chunks(snapshots, tmp_path):
    content = with_checksum(b"x" * (2 * CHUNK_BYTES + 5))

    async def body():
        taken = await snapshots.take(FakeMember(content, chunk_bytes=100_000))
        await snapshots.fetch(taken.key, tmp_path / "fetched.db")

    asyncio.run(body())
    assert (tmp_path / "fetched.db").read_bytes() == content


@pytest.mark.parametrize(
    "member",
    [
        FakeMember(with_checksum()[:-1]),
        FakeMember(b"!" + with_checksum()[1:]),
        FakeMember(b""),
        FakeMember(fails=True),
        FakeMember(leader_id=-1),
    ],
    ids=["cut off", "changed", "empty", "broken off", "gone"],
)
def test_incomplete_snapshot_is_not_stored(snapshots, store, member):
    with pytest.raises(SourceError):
        asyncio.run(snapshots.take(member))
    assert keys_of(store) == []


def test_snapshot_without_description_is_incomplete(store, clock):
    """As after a crash of the operator: the description is written last."""
    snapshots = SnapshotStore(failing(store, "put", "*.json"), PREFIX, clock)

    async def body():
        with pytest.raises(OperatingError):
            await snapshots.take(FakeMember())
        with pytest.raises(OperatingError, match="there is no complete snapshot"):
            await snapshots.describe(KEY)
        return await snapshots.list(), await snapshots.newest()

    assert asyncio.run(body()) == ([], None)
    assert keys_of(store) == [KEY]


def test_concurrent_snapshots_do_not_mix(snapshots):
    async def body():
        first = await snapshots.take(FakeMember())
        with pytest.raises(ObjectExistsError):
            await snapshots.take(FakeMember(with_checksum(DATABASE + b"other")))
        return await snapshots.verify(first.key)

    assert asyncio.run(body()).size_bytes == len(with_checksum())


@pytest.mark.parametrize(
    "content", [with_checksum()[:-1], b"!" + with_checksum()[1:], with_checksum() + b"!"]
)
def test_damaged_snapshot_is_detected(snapshots, store, tmp_path, content):
    async def body():
        taken = await snapshots.take(FakeMember())
        await store.put(taken.key, [content], create=False)
        with pytest.raises(DamagedObjectError):
            await snapshots.verify(taken.key)
        await snapshots.fetch(taken.key, tmp_path / "fetched.db")

    with pytest.raises(DamagedObjectError):
        asyncio.run(body())


def test_damaged_description_is_reported(snapshots, store):
    async def body():
        taken = await snapshots.take(FakeMember())
        await store.put(taken.key.replace(".db", ".json"), [b"{}"], create=False)
        await snapshots.describe(taken.key)

    with pytest.raises(DamagedObjectError, match=r"\.json: .*missing required field"):
        asyncio.run(body())


def test_prune_retains_the_newest(snapshots, clock, store):
    take(snapshots, clock, 5)
    before = [each.key for each in asyncio.run(snapshots.list())]
    assert before == sorted(before)
    assert asyncio.run(snapshots.prune(2)) == before[:3]
    assert [each.key for each in asyncio.run(snapshots.list())] == before[3:]
    assert len(keys_of(store)) == 4
    assert asyncio.run(snapshots.prune(2)) == []


def test_prune_deletes_descriptions_first(store, clock):
    """In the other order, a crash would leave a description without its database."""
    take(SnapshotStore(store, PREFIX, clock), clock, 2)
    with pytest.raises(OperatingError):
        asyncio.run(SnapshotStore(failing(store, "delete", "*.db"), PREFIX, clock).prune(1))
    remaining = SnapshotStore(store, PREFIX, clock)
    assert len(asyncio.run(remaining.list())) == 1
    assert KEY in keys_of(store)
    clock.now_ms += 2 * ABANDONED_MS
    assert asyncio.run(remaining.prune(1)) == [KEY]


def test_prune_deletes_abandoned_objects(snapshots, store, clock):
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


def test_find_by_key_name_and_latest(snapshots, clock):
    with pytest.raises(OperatingError, match=f"there is no snapshot under {PREFIX}/"):
        asyncio.run(snapshots.find("latest"))
    take(snapshots, clock, 2)
    latest = f"{PREFIX}/20231114T231320Z-17.db"
    for name in ("latest", latest, latest.rpartition("/")[2]):
        assert asyncio.run(snapshots.find(name)) == latest


def test_check_access_leaves_no_objects(snapshots, store):
    asyncio.run(snapshots.check_access())
    assert keys_of(store) == []


@pytest.mark.parametrize("operation", ["put", "get", "delete"])
def test_check_access_reports_failures(store, clock, operation):
    with pytest.raises(OperatingError):
        asyncio.run(SnapshotStore(failing(store, operation), PREFIX, clock).check_access())


def test_missing_spool_directory_is_reported(store, clock, tmp_path):
    snapshots = SnapshotStore(store, PREFIX, clock, spool=str(tmp_path / "absent"))
    with pytest.raises(OperatingError, match=r"cannot write the snapshot to .*absent"):
        asyncio.run(snapshots.take(FakeMember()))
