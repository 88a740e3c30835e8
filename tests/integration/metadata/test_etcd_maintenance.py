"""Maintenance of a real etcd: status, snapshots, compaction, alarms and members."""

import asyncio
import hashlib

import pytest

from kafscale.errors import StoreUnavailableError
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.store.etcd.maintenance import Maintenance
from services import etcd_programs
from services.certificates import make_certificates
from services.etcd_server import EtcdServer
from services.process import free_port


def maintain(server, body, *, index=0, **changes):
    """Run an async function with the maintenance client of a member."""

    async def scenario():
        settings = server.settings(**changes)
        async with Maintenance(server.members[index].endpoint, settings) as etcd:
            return await body(etcd)

    return asyncio.run(scenario())


async def write(server, count, size_bytes):
    store = EtcdStore(server.settings())
    try:
        for number in range(count):
            await store.commit([], [Put("/large", bytes([number % 256]) * size_bytes)])
    finally:
        await store.close()


async def whole(etcd):
    return b"".join([piece async for piece in etcd.snapshot()])


def test_status_of_a_member(etcd):
    async def body(member):
        before = await member.status()
        await write(etcd, 1, 10)
        return before, await member.status()

    before, after = maintain(etcd, body)
    assert before.version.startswith("3.")
    assert 0 < before.database_used_bytes <= before.database_bytes
    assert before.is_leader
    assert before.cluster_id
    assert not before.is_learner
    assert before.errors == ()
    assert after.revision == before.revision + 1


def test_snapshot_contains_the_database_and_its_checksum(etcd):
    asyncio.run(write(etcd, 20, 100_000))
    database = maintain(etcd, whole)
    assert len(database) > 1_000_000
    assert database[-32:] == hashlib.sha256(database[:-32]).digest()


def test_aborted_snapshot_leaves_the_member_usable(etcd):
    async def body(member):
        pieces = member.snapshot()
        await anext(pieces)
        await pieces.aclose()
        return await member.status()

    assert maintain(etcd, body).leader_id


def test_defragmentation_frees_compacted_space(etcd):
    asyncio.run(write(etcd, 60, 100_000))

    async def body(member):
        # etcd writes to disk a moment after it has confirmed.
        async with asyncio.timeout(10):
            while True:
                before = await member.status()
                if before.database_bytes > 5_000_000:
                    break
                await asyncio.sleep(0.1)
        await member.compact(before.revision)
        await member.compact(before.revision)
        await member.defragment()
        return before, await member.status()

    before, after = maintain(etcd, body)
    assert before.database_bytes > 5_000_000 > after.database_bytes
    assert after.revision == before.revision


@pytest.mark.timeout(300)  # The first run may build etcd.
@pytest.mark.skipif(not etcd_programs.is_available(), reason="no Go here to build etcd with")
def test_newest_etcd_reports_its_quota(tmp_path):
    options = ("--quota-backend-bytes", "2000000")
    with EtcdServer(tmp_path, options=options, programs=etcd_programs.directory()) as server:
        assert maintain(server, Maintenance.status).quota_bytes == 2_000_000


def test_old_etcd_does_not_report_its_quota(etcd):
    assert maintain(etcd, Maintenance.status).quota_bytes == 0


def test_full_database_raises_an_alarm_until_space_is_freed(tmp_path):
    with EtcdServer(tmp_path, options=("--quota-backend-bytes", "2000000")) as server:
        with pytest.raises(StoreUnavailableError, match="database space exceeded"):
            # etcd compares the size of its last batch with the quota, so some are accepted.
            asyncio.run(write(server, 1000, 100_000))

        async def body(member):
            async with asyncio.timeout(10):
                # etcd raises the alarm after it has rejected the write.
                while not (alarms := await member.alarms()):  # noqa: ASYNC110 - etcd sends no event.
                    await asyncio.sleep(0.05)
            [alarm] = alarms
            status = await member.status()
            assert status.has_no_space
            await member.compact(status.revision)
            await member.defragment()
            await member.disarm(alarm)
            assert not (await member.status()).has_no_space
            return alarm, status, await member.alarms()

        alarm, status, left = maintain(server, body)
        assert (alarm.kind, alarm.member_id) == ("NOSPACE", status.member_id)
        assert left == []
        asyncio.run(write(server, 1, 100_000))


def test_members_are_added_and_removed(tmp_path):
    peer_url = f"http://127.0.0.1:{free_port()}"
    with EtcdServer(tmp_path) as server:

        async def body(member):
            [only] = await member.members()
            added = await member.add_member([peer_url], learner=True)
            both = await member.members()
            await member.remove_member(added.id)
            await member.remove_member(added.id)
            return only, added, both, await member.members()

        only, added, both, last = maintain(server, body)
    assert only.name == "etcd-0"
    assert only.peer_urls == (server.members[0].peer_url,)
    assert only.client_urls == (f"http://{server.members[0].endpoint}",)
    assert (added.name, added.peer_urls, added.is_learner) == ("", (peer_url,), True)
    assert {each.id for each in both} == {only.id, added.id}
    assert last == [only]


def test_learner_is_not_promoted_before_it_has_caught_up(tmp_path):
    with EtcdServer(tmp_path) as server:

        async def body(member):
            added = await member.add_member([f"http://127.0.0.1:{free_port()}"], learner=True)
            await member.promote_member(added.id)

        with pytest.raises(StoreUnavailableError, match="in sync with leader"):
            maintain(server, body)


def test_member_without_quorum_serves_status_and_snapshot(cluster):
    first, *others = cluster.members
    asyncio.run(write(cluster, 1, 10))
    for other in others:
        other.kill()

    async def body(member):
        for _ in range(200):
            status = await member.status()
            if not status.leader_id:
                break
            await asyncio.sleep(0.02)
        with pytest.raises(StoreUnavailableError):
            await member.members()
        return status, await whole(member)

    status, database = maintain(cluster, body, request_timeout_ms=1000)
    assert status.leader_id == 0
    assert any("no leader" in error for error in status.errors)
    assert database[-32:] == hashlib.sha256(database[:-32]).digest()
    assert first.is_running


def test_stopped_member_is_unavailable(cluster):
    cluster.members[1].kill()

    async def body(member):
        await member.status()

    with pytest.raises(StoreUnavailableError, match="no etcd member is reachable"):
        maintain(cluster, body, index=1, request_timeout_ms=300)


def test_maintenance_uses_authentication_and_tls(tmp_path):
    certificates = make_certificates(tmp_path / "certificates")
    with EtcdServer(tmp_path, certificates=certificates) as server:
        server.enable_authentication()
        assert len(maintain(server, whole)) > 32

        async def body(member):
            await member.defragment()

        with pytest.raises(StoreUnavailableError, match="user"):
            maintain(server, body, username="", password="")
