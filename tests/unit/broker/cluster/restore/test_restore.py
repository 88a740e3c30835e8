"""Restored metadata is older than the bucket: no acknowledged record is lost."""

import asyncio
from random import Random

import pytest
import structlog

from doubles import virtual_time
from doubles.faulty_object_store import Fault, Rule
from kafscale.broker.cluster.restore.topics import CATALOG_LATE_MS
from kafscale.errors import FencedError
from kafscale.metadata.cluster.restore_marker import find_pending_restore, mark_restored
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.storage import topic_catalog
from kafscale.storage.formats import object_keys
from unit.broker.cluster.restorable_cluster import (
    LEASE_MS,
    BackedUpStore,
    Backup,
    RestorableCluster,
)
from unit.broker.in_memory_broker import CONFIG

both_ways = pytest.mark.parametrize("leap", [True, False], ids=["leap", "mark"])


def simulate(body, seed=0):
    async def scenario(random):
        cluster = RestorableCluster()
        try:
            await body(cluster, random)
        finally:
            await cluster.kill()

    virtual_time.run(scenario, seed=seed, time_max_s=3600)


def simple(body):
    async def with_random(cluster, _random):
        await body(cluster)

    simulate(with_random)


@both_ways
def test_records_of_sessions_unknown_to_the_metadata_are_recovered(leap):
    async def body(cluster):
        await cluster.start(1, 2)
        await cluster.topic("orders", 4)
        for number in range(4):
            await cluster.write("orders", number, 3)
        backup = cluster.metadata.backup()
        # Broker 2 takes over the partitions of broker 1, then a new session of broker 1 does.
        await cluster.kill(1)
        await asyncio.sleep(30)
        for number in range(4):
            await cluster.write("orders", number, 2)
        await cluster.roll("orders", 0)
        await cluster.start(1)
        await cluster.kill(2)
        await asyncio.sleep(30)
        for number in range(4):
            await cluster.write("orders", number, 2)
        await cluster.kill()
        await cluster.restore(backup, leap=leap)
        await cluster.start(3)
        await cluster.check()
        assert await find_pending_restore(cluster.metadata) is None
        await cluster.start(1, 2)
        await asyncio.sleep(30)
        await cluster.check()

    simple(body)


@both_ways
def test_streams_of_sessions_without_assignments_in_the_snapshot_are_read(leap):
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("orders", 2)
        await cluster.write("orders", 0)
        await cluster.start(2)
        backup = cluster.metadata.backup()
        # Both sessions last, and partitions move between them: no epoch shows it.
        await asyncio.sleep(60)
        assert {id(await cluster.owner("orders", number)) for number in (0, 1)} == {
            id(broker) for broker in cluster.brokers.values()
        }
        for number in (0, 1):
            await cluster.write("orders", number, 3)
        await cluster.kill()
        await cluster.restore(backup, leap=leap)
        await cluster.start(1)
        await cluster.check()

    simple(body)


@both_ways
def test_topics_created_grown_and_deleted_after_the_snapshot(leap):
    async def body(cluster):
        await cluster.start(1, 2)
        await cluster.topic("old", 1)
        await cluster.topic("growing", 1)
        await cluster.topic("going", 1)
        await cluster.topic("recreated", 2)
        for name in ("old", "growing", "going", "recreated"):
            await cluster.write(name, 0, 2)
            await cluster.roll(name, 0)
        backup = cluster.metadata.backup()
        await cluster.topic("coming", 3, retention_ms="123456789")
        await cluster.write("coming", 2, 2)
        await cluster.grow("growing", 3)
        await cluster.write("growing", 2)
        await cluster.delete("going")
        await cluster.delete("recreated")
        await asyncio.sleep(30)
        await cluster.topic("recreated", 1)
        await cluster.write("recreated", 0)
        recreated = cluster.any_broker.services.topic_store.get("recreated").id
        await cluster.wait_until_published()
        await cluster.kill()
        await cluster.restore(backup, leap=leap)
        await cluster.start(1, 2)
        await cluster.check()
        topics = cluster.any_broker.services.topic_store.topics
        assert topics["coming"].configs == {"retention.ms": "123456789"}
        assert topics["recreated"].id == recreated
        await asyncio.sleep(60)
        tombstone = await cluster.metadata.get(keys.deletion("going"))
        assert decode_topic(tombstone).emptied_ms, "its objects are deleted"
        await cluster.check()

    simple(body)


def test_restored_tombstone_does_not_delete_a_newer_topic_of_that_name():
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("recreated", 1)
        await cluster.write("recreated", 0)
        await cluster.roll("recreated", 0)
        deleted = cluster.any_broker.services.topic_store.get("recreated")
        # The snapshot is taken between the two transactions of a deletion.
        await cluster.delete("recreated")
        backup = cluster.metadata.backup()
        assert keys.deletion("recreated") in backup.entries
        await asyncio.sleep(30)
        await cluster.topic("recreated", 1)
        await cluster.topic("other", 1)
        await cluster.write("recreated", 0, 2)
        await cluster.roll("recreated", 0)
        await cluster.trim("recreated", 0)
        await cluster.wait_until_published()
        await cluster.kill()
        await cluster.restore(backup, leap=True)
        await cluster.start(1)
        await asyncio.sleep(60)
        await cluster.check()
        assert cluster.any_broker.services.topic_store.get("recreated").id != deleted.id

    simple(body)


def test_unlisted_topic_is_recreated_from_its_records():
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("old", 1)
        await cluster.wait_until_published()
        backup = cluster.metadata.backup()
        await cluster.topic("rolled", 1)
        await cluster.write("rolled", 0, 2)
        await cluster.roll("rolled", 0)
        await cluster.topic("new", 2)
        await cluster.write("new", 1, 2)
        await cluster.kill()
        await cluster.restore(backup, leap=True)
        await cluster.start(1)
        await cluster.check()

    simple(body)


def test_offsets_of_deleted_records_are_not_reused():
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("orders", 1)
        await cluster.topic("other", 1)
        await cluster.write("orders", 0, 2)
        backup = cluster.metadata.backup()
        await cluster.write("orders", 0, 5)
        await cluster.roll("orders", 0)
        await cluster.delete_records("orders", 0, 7)
        broker = await cluster.owner("orders", 0)
        log = broker.services.storage.logs.get("orders", 0)
        await broker.services.storage.retention.enforce(log)
        assert len(log.segments) == 0
        await cluster.trim("orders", 0)
        await cluster.kill()
        await cluster.restore(backup, leap=True)
        await cluster.start(1)
        await cluster.write("orders", 0)
        assert cluster.acked["orders", 0].keys() == {7}

    simple(body)


def test_epochs_and_ids_never_decrease_when_a_snapshot_is_restored_twice():
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("orders", 1)
        await cluster.write("orders", 0)
        await cluster.allocate_producer_ids()
        backup = cluster.metadata.backup()
        for _ in range(3):
            await cluster.kill()
            await asyncio.sleep(60)
            await cluster.restore(backup, leap=True)
            await cluster.start(1)
            await cluster.check()

    simple(body)


def test_lost_metadata_are_rebuilt_from_the_bucket():
    async def body(cluster):
        await cluster.start(1, 2)
        await cluster.topic("orders", 3, retention_ms="123456789")
        await cluster.topic("empty", 2)
        for number in range(3):
            await cluster.write("orders", number, 2)
        await cluster.roll("orders", 0)
        await cluster.allocate_producer_ids()
        await cluster.wait_until_published()
        await cluster.kill()
        await asyncio.sleep(60)
        await cluster.restore(Backup({}, 0), leap=False)
        await cluster.start(1, 2)
        await cluster.check()
        topics = cluster.any_broker.services.topic_store.topics
        assert topics["orders"].configs == {"retention.ms": "123456789"}

    simple(body)


def test_lost_metadata_delete_nothing():
    """The catalog is this cluster's and newer, but there are no metadata that confirm it."""

    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("orders", 1)
        await cluster.topic("unlisted", 1)
        for name in ("orders", "unlisted"):
            await cluster.write(name, 0, 2)
            await cluster.roll(name, 0)
            await cluster.write(name, 0, 2)
        await cluster.wait_until_published()
        await cluster.kill()
        key = object_keys.catalog_key(CONFIG.s3.namespace)
        catalog = topic_catalog.decode(key, bytes(await cluster.stores.objects.get(key)))
        await asyncio.sleep(60)
        listed = [topic for topic in catalog.topics if topic.name == "orders"]
        data = topic_catalog.encode(listed, cluster_id=catalog.cluster_id, revision=10**6)
        await cluster.stores.objects.put(key, [data], create=False)
        await cluster.restore(Backup({}, 0), leap=False)
        await cluster.start(1)
        await asyncio.sleep(180)
        await cluster.check()
        published = topic_catalog.decode(key, bytes(await cluster.stores.objects.get(key)))
        assert {topic.name for topic in published.topics} == {"orders", "unlisted"}

    simple(body)


@pytest.mark.parametrize("is_running", [True, False])
def test_broker_with_other_metadata_destroys_nothing(is_running):
    """A broker of another id and without metadata joins, although the start check refuses it."""

    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("rolled", 1)
        await cluster.write("rolled", 0)
        await cluster.roll("rolled", 0)
        await cluster.topic("waiting", 1)
        await cluster.write("waiting", 0, 5)
        await cluster.wait_until_published()
        if not is_running:
            await cluster.kill()
        before = await objects_of(cluster)
        wrong = RestorableCluster()
        wrong.stores = cluster.stores
        await wrong.start(2)
        try:
            await asyncio.sleep(900)
        finally:
            await wrong.kill()
        after = await objects_of(cluster)
        assert {key: after.get(key) for key in before} == before
        if is_running:
            await cluster.check()

    simple(body)


async def objects_of(cluster: RestorableCluster) -> dict[str, bytes]:
    """What is in the bucket, without the catalog."""
    objects = cluster.stores.objects
    return {
        item.key: bytes(await objects.get(item.key))
        async for chunk in objects.list(f"{CONFIG.s3.namespace}/")
        for item in chunk
        if "/_catalog/" not in item.key
    }


def test_broker_marks_an_unmarked_restore_when_its_epoch_is_missing():
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("orders", 1)
        await cluster.write("orders", 0)
        backup = cluster.metadata.backup()
        await cluster.kill(1)
        await cluster.start(1)
        await cluster.topic("new", 1)
        await cluster.write("new", 0)
        await cluster.write("orders", 0)
        await cluster.wait_until_published()
        await cluster.kill()
        cluster.metadata = BackedUpStore.restored(backup, leap=0)
        with structlog.testing.capture_logs() as logs:
            await cluster.start(1)
        assert "metadata is older than the bucket" in [line["event"] for line in logs]
        await cluster.check()
        # The restore is complete: later starts do not report it again.
        with structlog.testing.capture_logs() as logs:
            await cluster.kill(1)
            await cluster.start(1, 2)
        assert "metadata is older than the bucket" not in [line["event"] for line in logs]
        await cluster.check()

    simple(body)


def test_broker_serves_only_when_it_sees_the_restored_topics():
    async def body(cluster):
        await cluster.start(1, 2)
        await cluster.topic("orders", 1)
        backup = cluster.metadata.backup()
        await cluster.grow("orders", 4)
        await cluster.wait_until_published()
        await cluster.kill()
        await cluster.restore(backup, leap=True)
        cluster.late_s[2] = {keys.TOPICS: 20}
        await cluster.start(1, 2)
        for broker in cluster.brokers.values():
            assert broker.services.topic_store.get("orders").partitions == 4

    simple(body)


def test_restore_is_retried_when_a_store_fails():
    async def body(cluster):
        await cluster.start(1)
        await cluster.topic("orders", 1)
        await cluster.write("orders", 0)
        backup = cluster.metadata.backup()
        await cluster.topic("new", 1)
        await cluster.write("new", 0)
        await cluster.kill()
        await cluster.restore(backup, leap=True)
        complete = f"{CONFIG.s3.namespace}/"
        cluster.stores.objects.rules += [
            Rule(fault=Fault.REFUSED, operations=frozenset({"list"}), keys=complete, times_max=2),
            Rule(fault=Fault.REFUSED, operations=frozenset({"get_suffix"}), times_max=1),
        ]
        with structlog.testing.capture_logs() as logs:
            await cluster.start(1)
        assert len([line for line in logs if line.get("duty") == "restore"]) == 3
        await cluster.check()

    simple(body)


def test_running_broker_stops_when_the_metadata_are_restored():
    async def body(cluster):
        await cluster.start(1)
        broker = cluster.any_broker
        now_ms = virtual_time.clock_ms()
        await mark_restored(
            cluster.metadata, snapshot="a.db", taken_at_ms=now_ms, restored_at_ms=now_ms
        )
        await asyncio.sleep(LEASE_MS / 1000)
        assert list(broker.node.ownership.served) == []
        with pytest.raises(FencedError, match="restored from a snapshot while this broker ran"):
            await broker.node.registration.check_not_superseded()

    simple(body)


@pytest.mark.parametrize("seed", range(12))
def test_restore_with_random_history_and_crashes(seed):
    """Brokers crash at random, also those that run the restore."""

    async def body(cluster, random):
        await cluster.start(1, 2, 3)
        await cluster.topic("first", 3)
        await cluster.topic("second", 2)
        await run_random_operations(cluster, random, 10)
        backup = cluster.metadata.backup()
        await run_random_operations(cluster, random, 20)
        is_published = random.random() < 0.7
        if is_published:
            await cluster.wait_until_published()
        await cluster.kill()
        await cluster.restore(backup, leap=random.random() < 0.5)
        for _ in range(random.randrange(4)):
            broker_id = random.choice([1, 2, 3])
            starting = cluster.begin(broker_id)
            await asyncio.sleep(random.choice([0.001, 0.01, 0.1, 1, 10, 11]))
            await cluster.kill(broker_id)
            await starting
        some = random.sample([1, 2, 3, 4], random.randrange(1, 4))
        await cluster.start(*some)
        if not is_published:
            cluster.drop_empty_partitions()
        await cluster.check()
        await cluster.start(*{1, 2, 3}.difference(some))
        await run_random_operations(cluster, random, 5)
        await cluster.check()

    simulate(body, seed=seed)


async def run_random_operations(cluster: RestorableCluster, random: Random, steps: int):
    """Random operations of clients and brokers."""
    for _ in range(steps):
        topic, partition = random.choice(sorted(cluster.acked))
        match random.randrange(8):
            case 0:
                broker_id = random.choice(sorted(cluster.brokers))
                await cluster.kill(broker_id)
                await cluster.start(broker_id)
            case 1:
                broker_id = random.choice(sorted(cluster.brokers))
                if len(cluster.brokers) > 1:
                    await cluster.brokers[broker_id].node.leave(30)
                await cluster.kill(broker_id)
                await cluster.start(broker_id)
            case 2:
                await cluster.roll(topic, partition)
            case 3:
                await cluster.allocate_producer_ids()
            case 4 if random.random() < 0.5:
                await cluster.topic(f"topic-{random.randrange(10**6)}", random.randrange(1, 4))
            case 5 if random.random() < 0.5:
                await cluster.grow(
                    topic, 1 + len([each for each in cluster.acked if each[0] == topic])
                )
            case 6 if len({each[0] for each in cluster.acked}) > 2 and random.random() < 0.5:
                # A topic that the catalog never listed, or that was written to a moment ago, would
                # count as new, not as deleted.
                await cluster.wait_until_published()
                await asyncio.sleep(CATALOG_LATE_MS / 1000)
                await cluster.delete(topic)
                await cluster.wait_until_published()
            case _:
                await cluster.write(topic, partition, random.randrange(1, 4))
