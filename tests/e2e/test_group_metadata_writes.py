"""What a large group costs etcd under load: nothing for heartbeats, little for commits (N-10c)."""

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from bench.classic_member import ClassicMember
from bench.group_member import GroupSpec, Member, wait_until_stable
from bench.group_members import GroupMembers, working
from bench.periodic_task import PeriodicTask
from kafscale.config.sections.etcd import Etcd
from kafscale.metadata.store.etcd.maintenance import Maintenance
from services import s3_server
from services.background_producer import BackgroundProducer
from services.broker import BrokerProcess
from services.etcd_server import EtcdServer
from services.s3_server import S3Server, broker_settings
from services.wire import Wire

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(not s3_server.is_available(), reason="no Go here to build an S3 server"),
]

MEMBERS = 100
HEARTBEAT_S = 0.5
QUIET_S = 8
QUIET_REVISIONS_MAX = 4
"""The broker's own heartbeat, and what it saves about partitions."""
ROUNDS = 40
"""How often all members commit between two compactions of etcd's history."""
REVISIONS_PER_ROUND_MAX = 5
"""It is one, unless commits come too late for the transaction of the others."""
PERIODS = 4


def test_large_group_under_load_costs_etcd_little(tmp_path):
    for name in ("etcd", "s3"):
        (tmp_path / name).mkdir()
    with EtcdServer(tmp_path / "etcd") as etcd, S3Server(tmp_path / "s3") as s3:
        settings = broker_settings(s3.bucket) | {
            "broker_id": "1",
            "etcd_endpoints": etcd.members[0].endpoint,
            "group_initial_rebalance_delay_ms": "500",
        }
        with BrokerProcess(tmp_path / "broker", **settings) as broker:
            with Wire(broker.port) as wire:
                wire.create("busy", partitions=MEMBERS)
            with BackgroundProducer(broker.address, "busy", partitions=10):
                asyncio.run(check_writes(broker.address, etcd.settings(), etcd.compact))


async def check_writes(address: str, settings: Etcd, compact: Callable[[int], None]) -> None:
    group = GroupSpec("large", "busy", MEMBERS)
    heartbeats = PeriodicTask(HEARTBEAT_S, random.Random(0))
    async with (
        GroupMembers(ClassicMember, address) as connections,
        Maintenance(settings.endpoints[0], settings) as etcd,
    ):
        members = await connections.connect_members(group, MEMBERS)
        async with working(members, heartbeats):
            await wait_until_stable(members, MEMBERS)
            await check_heartbeats(etcd, heartbeats)
            sizes = [await size_after_commits(etcd, members, compact) for _ in range(PERIODS)]
    # Space that a compaction frees is used again: nothing has to be defragmented.
    assert sizes[-1] <= sizes[1] * 1.1, sizes


async def check_heartbeats(etcd: Maintenance, heartbeats: PeriodicTask) -> None:
    before = await etcd.status()
    heartbeats.seconds.clear()
    await asyncio.sleep(QUIET_S)
    assert len(heartbeats.seconds) > MEMBERS * QUIET_S / HEARTBEAT_S / 2
    assert (await etcd.status()).revision - before.revision <= QUIET_REVISIONS_MAX


async def size_after_commits(
    etcd: Maintenance, members: Sequence[Member], compact: Callable[[int], None]
) -> int:
    """All members commit at once, again and again; the size of the database after compaction."""
    before = await etcd.status()
    for number in range(ROUNDS):
        await asyncio.gather(*(member.commit(number) for member in members))
    after = await etcd.status()
    assert after.revision - before.revision <= ROUNDS * REVISIONS_PER_ROUND_MAX
    await asyncio.to_thread(compact, after.revision)
    return after.database_bytes
