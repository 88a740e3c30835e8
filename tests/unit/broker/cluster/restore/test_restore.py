"""Metadata are lost, and come back older than the bucket: nothing acknowledged is lost by it."""

import asyncio
from random import Random

import pytest
import structlog

from kafscale.broker.cluster.restore.topics import CATALOG_LATE_MS
from kafscale.errors import FencedError
from kafscale.metadata.cluster.restore_marker import find_restored, mark_restored
from kafscale.metadata.schema import keys
from kafscale.testing import virtual_time
from kafscale.testing.faulty_object_store import Fault, Rule
from unit.broker.cluster.backups import LEASE_MS, BackedUpStore, Backup, Town
from unit.broker.handlers.serving import CONFIG

both_ways = pytest.mark.parametrize("leap", [True, False], ids=["leap", "mark"])


def simulate(body, seed=0):
    async def scenario(random):
        town = Town()
        try:
            await body(town, random)
        finally:
            await town.kill()

    virtual_time.run(scenario, seed=seed, time_max_s=3600)


def simple(body):
    async def with_random(town, _random):
        await body(town)

    simulate(with_random)


@both_ways
def test_records_of_a_life_that_the_metadata_do_not_know_are_found_by_whoever_comes_first(leap):
    async def body(town):
        await town.start(1, 2)
        await town.topic("orders", 4)
        for number in range(4):
            await town.write("orders", number, 3)
        backup = town.metadata.backup()
        # The partitions of broker 1 are broker 2's, then those of a new life of broker 1.
        await town.kill(1)
        await asyncio.sleep(30)
        for number in range(4):
            await town.write("orders", number, 2)
        await town.roll("orders", 0)
        await town.start(1)
        await town.kill(2)
        await asyncio.sleep(30)
        for number in range(4):
            await town.write("orders", number, 2)
        await town.kill()
        await town.restore(backup, leap=leap)
        await town.start(3)
        await town.check()
        assert await find_restored(town.metadata) is None
        await town.start(1, 2)
        await asyncio.sleep(30)
        await town.check()

    simple(body)


@both_ways
def test_a_stream_of_a_life_that_owned_nothing_in_the_snapshot_is_read_too(leap):
    async def body(town):
        await town.start(1)
        await town.topic("orders", 2)
        await town.write("orders", 0)
        await town.start(2)
        backup = town.metadata.backup()
        # Both are the same lives all the time, and partitions moved: no epoch tells of it.
        await asyncio.sleep(60)
        assert {id(await town.owner("orders", number)) for number in (0, 1)} == {
            id(broker) for broker in town.brokers.values()
        }
        for number in (0, 1):
            await town.write("orders", number, 3)
        await town.kill()
        await town.restore(backup, leap=leap)
        await town.start(1)
        await town.check()

    simple(body)


@both_ways
def test_topics_that_came_grew_and_went_after_the_snapshot(leap):
    async def body(town):
        await town.start(1, 2)
        await town.topic("old", 1)
        await town.topic("growing", 1)
        await town.topic("going", 1)
        await town.topic("anew", 2)
        for name in ("old", "growing", "going", "anew"):
            await town.write(name, 0, 2)
            await town.roll(name, 0)
        backup = town.metadata.backup()
        await town.topic("coming", 3, retention_ms="123456789")
        await town.write("coming", 2, 2)
        await town.grow("growing", 3)
        await town.write("growing", 2)
        await town.delete("going")
        await town.delete("anew")
        await asyncio.sleep(30)
        await town.topic("anew", 1)
        await town.write("anew", 0)
        anew = town.any_broker.services.catalog.get("anew").id
        await town.published()
        await town.kill()
        await town.restore(backup, leap=leap)
        await town.start(1, 2)
        await town.check()
        topics = town.any_broker.services.catalog.topics
        assert topics["coming"].configs == {"retention.ms": "123456789"}
        assert topics["anew"].id == anew
        await asyncio.sleep(60)
        assert not await town.metadata.get(keys.deletion("going"))
        await town.check()

    simple(body)


def test_a_restored_tombstone_does_not_delete_the_topic_that_has_taken_the_name():
    async def body(town):
        await town.start(1)
        await town.topic("anew", 1)
        await town.write("anew", 0)
        await town.roll("anew", 0)
        deleted = town.any_broker.services.catalog.get("anew")
        # Between the two commits of a deletion is where the snapshot is taken.
        await town.delete("anew")
        backup = town.metadata.backup()
        assert keys.deletion("anew") in backup.entries
        await asyncio.sleep(30)
        await town.topic("anew", 1)
        await town.topic("other", 1)
        await town.write("anew", 0, 2)
        await town.roll("anew", 0)
        await town.trim("anew", 0)
        await town.published()
        await town.kill()
        await town.restore(backup, leap=True)
        await town.start(1)
        await asyncio.sleep(60)
        await town.check()
        assert town.any_broker.services.catalog.get("anew").id != deleted.id

    simple(body)


def test_a_topic_that_the_catalog_does_not_list_yet_is_made_of_its_records():
    async def body(town):
        await town.start(1)
        await town.topic("old", 1)
        await town.published()
        backup = town.metadata.backup()
        await town.topic("rolled", 1)
        await town.write("rolled", 0, 2)
        await town.roll("rolled", 0)
        await town.topic("new", 2)
        await town.write("new", 1, 2)
        await town.kill()
        await town.restore(backup, leap=True)
        await town.start(1)
        await town.check()

    simple(body)


def test_offsets_of_deleted_records_are_not_given_out_again():
    async def body(town):
        await town.start(1)
        await town.topic("orders", 1)
        await town.topic("other", 1)
        await town.write("orders", 0, 2)
        backup = town.metadata.backup()
        await town.write("orders", 0, 5)
        await town.roll("orders", 0)
        await town.delete_records("orders", 0, 7)
        broker = await town.owner("orders", 0)
        log = broker.services.storage.logs.find("orders", 0)
        await broker.services.storage.retention.enforce(log)
        assert len(log.segments) == 0
        await town.trim("orders", 0)
        await town.kill()
        await town.restore(backup, leap=True)
        await town.start(1)
        await town.write("orders", 0)
        assert town.acked["orders", 0].keys() == {7}

    simple(body)


def test_nothing_that_clients_compare_goes_back_though_a_snapshot_is_restored_twice():
    async def body(town):
        await town.start(1)
        await town.topic("orders", 1)
        await town.write("orders", 0)
        await town.take_producer_id()
        backup = town.metadata.backup()
        for _ in range(3):
            await town.kill()
            await asyncio.sleep(60)
            await town.restore(backup, leap=True)
            await town.start(1)
            await town.check()

    simple(body)


def test_metadata_that_are_lost_altogether_come_back_as_far_as_the_bucket_knows_them():
    async def body(town):
        await town.start(1, 2)
        await town.topic("orders", 3, retention_ms="123456789")
        await town.topic("empty", 2)
        for number in range(3):
            await town.write("orders", number, 2)
        await town.roll("orders", 0)
        await town.take_producer_id()
        await town.published()
        await town.kill()
        await asyncio.sleep(60)
        await town.restore(Backup({}, 0), leap=False)
        await town.start(1, 2)
        await town.check()
        topics = town.any_broker.services.catalog.topics
        assert topics["orders"].configs == {"retention.ms": "123456789"}

    simple(body)


def test_a_store_that_nobody_has_marked_is_marked_by_the_broker_that_finds_its_epoch_gone():
    async def body(town):
        await town.start(1)
        await town.topic("orders", 1)
        await town.write("orders", 0)
        backup = town.metadata.backup()
        await town.kill(1)
        await town.start(1)
        await town.topic("new", 1)
        await town.write("new", 0)
        await town.write("orders", 0)
        await town.published()
        await town.kill()
        town.metadata = BackedUpStore.restored(backup, leap=0)
        with structlog.testing.capture_logs() as logs:
            await town.start(1)
        assert "metadata are older than the bucket" in [line["event"] for line in logs]
        await town.check()
        # It is settled for good: nobody else takes offence.
        with structlog.testing.capture_logs() as logs:
            await town.kill(1)
            await town.start(1, 2)
        assert "metadata are older than the bucket" not in [line["event"] for line in logs]
        await town.check()

    simple(body)


def test_a_store_that_fails_in_between_is_asked_again():
    async def body(town):
        await town.start(1)
        await town.topic("orders", 1)
        await town.write("orders", 0)
        backup = town.metadata.backup()
        await town.topic("new", 1)
        await town.write("new", 0)
        await town.kill()
        await town.restore(backup, leap=True)
        whole = f"{CONFIG.s3.namespace}/"
        town.stores.objects.rules += [
            Rule(fault=Fault.REFUSED, operations=frozenset({"list"}), keys=whole, times_max=2),
            Rule(fault=Fault.REFUSED, operations=frozenset({"get_suffix"}), times_max=1),
        ]
        with structlog.testing.capture_logs() as logs:
            await town.start(1)
        assert len([line for line in logs if line.get("duty") == "restore"]) == 3
        await town.check()

    simple(body)


def test_a_broker_that_lives_when_the_metadata_are_restored_stops():
    async def body(town):
        await town.start(1)
        broker = town.any_broker
        now_ms = virtual_time.clock_ms()
        await mark_restored(
            town.metadata, snapshot="a.db", taken_at_ms=now_ms, restored_at_ms=now_ms
        )
        await asyncio.sleep(LEASE_MS / 1000)
        assert list(broker.node.ownership.served) == []
        with pytest.raises(FencedError, match="restored from a snapshot while this broker ran"):
            await broker.node.membership.check_alone()

    simple(body)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happened_and_whoever_dies_in_the_middle(seed):
    """Brokers live and die at random; so do those who settle the restoration."""

    async def body(town, random):
        await town.start(1, 2, 3)
        await town.topic("first", 3)
        await town.topic("second", 2)
        await live_on(town, random, 10)
        backup = town.metadata.backup()
        await live_on(town, random, 20)
        is_published = random.random() < 0.7
        if is_published:
            await town.published()
        await town.kill()
        await town.restore(backup, leap=random.random() < 0.5)
        for _ in range(random.randrange(4)):
            victim = random.choice([1, 2, 3])
            starting = town.begin(victim)
            await asyncio.sleep(random.choice([0.001, 0.01, 0.1, 1, 10, 11]))
            await town.kill(victim)
            await starting
        some = random.sample([1, 2, 3, 4], random.randrange(1, 4))
        await town.start(*some)
        if not is_published:
            town.forget_what_is_empty()
        await town.check()
        await town.start(*{1, 2, 3}.difference(some))
        await live_on(town, random, 5)
        await town.check()

    simulate(body, seed=seed)


async def live_on(town: Town, random: Random, steps: int):
    """Some of what happens in the days of a cluster."""
    for _ in range(steps):
        topic, partition = random.choice(sorted(town.acked))
        match random.randrange(8):
            case 0:
                victim = random.choice(sorted(town.brokers))
                await town.kill(victim)
                await town.start(victim)
            case 1:
                victim = random.choice(sorted(town.brokers))
                if len(town.brokers) > 1:
                    await town.brokers[victim].node.leave(30)
                await town.kill(victim)
                await town.start(victim)
            case 2:
                await town.roll(topic, partition)
            case 3:
                await town.take_producer_id()
            case 4 if random.random() < 0.5:
                await town.topic(f"topic-{random.randrange(10**6)}", random.randrange(1, 4))
            case 5 if random.random() < 0.5:
                await town.grow(topic, 1 + len([each for each in town.acked if each[0] == topic]))
            case 6 if len({each[0] for each in town.acked}) > 2 and random.random() < 0.5:
                # What the catalog has never listed, or what was written to a moment ago, would be
                # taken for new, and not for deleted.
                await town.published()
                await asyncio.sleep(CATALOG_LATE_MS / 1000)
                await town.delete(topic)
                await town.published()
            case _:
                await town.write(topic, partition, random.randrange(1, 4))
