"""Tests of snapshots of a real etcd in a real bucket, and of restoring them."""

import asyncio
import time
from random import Random
from uuid import uuid4

import pytest

from kafscale.admin.etcd.backups.store import SINGLE_PUT_BYTES_MAX, SnapshotStore
from kafscale.metadata.cluster.restore_marker import (
    RestoreInfo,
    complete_restore,
    find_pending_restore,
)
from kafscale.metadata.store.base import EventKind, Put
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.observability.metrics.operator import SnapshotMetrics
from kafscale.operator.etcd import restore
from kafscale.operator.etcd.backups.scheduler import SnapshotScheduler
from kafscale.operator.etcd.restore import Identity
from kafscale.operator.spec.cluster import SnapshotsSpec
from kafscale.storage.objects.s3.store import S3ObjectStore
from services import etcd_programs, s3_server
from services.etcd_server import EtcdCluster, EtcdServer
from unit.operator.etcd.members import FakeMember, with_checksum


def clock():
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="session")
def bucket(tmp_path_factory):
    serve = s3_server.s3_server if s3_server.is_available() else s3_server.moto_server
    with serve(tmp_path_factory.mktemp("s3")) as served:
        yield served


@pytest.fixture
def snapshots(bucket):
    store = S3ObjectStore(bucket)
    yield SnapshotStore(store, f"etcd-snapshots/{uuid4()}", clock)
    asyncio.run(store.close())


def identity(member):
    return Identity(
        name=member.name,
        advertise_peer_urls=member.peer_url,
        initial_cluster=f"{member.name}={member.peer_url}",
        initial_cluster_token="test",  # noqa: S106 - a name, not a secret.
    )


def test_snapshots_are_taken_from_three_members_and_from_two(tmp_path, snapshots):
    spec, metrics = SnapshotsSpec(interval_seconds=10), SnapshotMetrics()
    with EtcdCluster(tmp_path) as cluster:

        async def body(store):
            scheduler = SnapshotScheduler(
                snapshots,
                spec,
                cluster.settings(),
                metrics,
                random=Random(0),
                timer=time.monotonic,
                wait_seconds=15,
            )
            first = await scheduler.reconcile(clock())
            assert [each.status for each in first.conditions] == ["True", "True"]
            await store.commit([], [Put("/kafscale/cluster/id", b"test")])
            cluster.member(await find_leader(cluster.settings())).kill()
            await store.get("/kafscale/cluster/id")
            second = await scheduler.reconcile(clock() + 10_000)
            assert second.failures == 0
            assert second.last_key != first.last_key
            return await snapshots.verify(second.last_key)

        described = cluster.run(body)
    assert (described.etcd_version, described.revision) == ("3.5.1", 2)
    assert metrics.size_bytes == described.size_bytes > 20_000


async def find_leader(settings):
    for endpoint in settings.endpoints:
        async with Maintenance(endpoint, settings) as member:
            if (await member.status()).is_leader:
                return endpoint
    raise AssertionError("no leader")


def test_large_snapshot_is_uploaded_in_parts(snapshots, tmp_path):
    content = with_checksum(b"0123456789abcdef" * (SINGLE_PUT_BYTES_MAX // 16 + 1000))
    path = tmp_path / "fetched.db"

    async def body():
        taken = await snapshots.take(FakeMember(content, chunk_bytes=1 << 20))
        await snapshots.fetch(taken.key, path)

    asyncio.run(body())
    assert path.read_bytes() == content


@pytest.mark.timeout(300)
@pytest.mark.skipif(not etcd_programs.is_available(), reason="no Go here to build etcdutl with")
def test_restored_store_has_the_data_and_a_pending_restore(tmp_path, snapshots):
    program = str(etcd_programs.directory() / "etcdutl")
    (tmp_path / "first").mkdir()
    with EtcdServer(tmp_path / "first") as server:

        async def fill(store):
            for number in range(10):
                await store.commit([], [Put(f"/kafscale/topics/{number}", b"before")])
            async with Maintenance(server.members[0].endpoint, server.settings()) as member:
                taken = await snapshots.take(member)
            committed = await store.commit([], [Put("/kafscale/topics/0", b"after")])
            assert await find_pending_restore(store) is None
            return taken, committed.revision

        taken, revision = server.run(fill)
    directory = tmp_path / "second" / "etcd-0"
    second = EtcdServer(tmp_path / "second")
    with restore.staging(directory) as staging_directory:
        asyncio.run(snapshots.fetch(taken.key, staging_directory / "snapshot.db"))
        is_bumped = restore.restore(
            program,
            staging_directory / "snapshot.db",
            directory,
            staging_directory,
            identity(second.members[0]),
        )
    assert is_bumped
    assert [path.name for path in directory.iterdir()] == ["member"]
    with second:

        async def check_store(store):
            result = await store.range("/kafscale/topics/")
            assert {entry.value for entry in result.entries} == {b"before"}
            assert len(result.entries) == 10
            # A watcher of the former store notices that this is another one.
            async for events in store.watch("/kafscale/topics/", revision):
                assert [event.kind for event in events] == [EventKind.COMPACTED]
            pending = await find_pending_restore(store)
            assert (pending.info, pending.restore_count) == (RestoreInfo(), 1)
            assert await complete_restore(store, pending)
            assert await find_pending_restore(store) is None
            await store.commit([], [Put("/kafscale/topics/0", b"again")])
            return (await store.get("/kafscale/topics/0")).value

        assert second.run(check_store) == b"again"
