"""`Catalog`: topics as brokers see and change them; each "broker" is a catalog."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from kafscale.errors import (
    InvalidPartitionsError,
    InvalidTopicError,
    StoreUnavailableError,
    TopicExistsError,
    UnknownTopicError,
)
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.metadata.topics.catalog import Catalog
from unit.metadata.interruptible_store import InterruptibleStore

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))
NOW_MS = 1_736_937_000_000


@asynccontextmanager
async def catalogs(store, count=1):
    """Catalogs that share one store, each with the list of its reported changes."""
    created = [(Catalog(store), []) for _ in range(count)]
    for catalog, changes in created:
        await catalog.start()
        catalog.subscribe(lambda before, after, changes=changes: changes.append((before, after)))
    yield created if count > 1 else created[0]
    for catalog, _ in created:
        await catalog.close()


async def create(catalog, name="orders", topic_id=ID, partitions=6, configs=None, **options):
    return await catalog.create(name, partitions, configs or {}, NOW_MS, topic_id, **options)


async def settled(brokers):
    """Give all brokers a moment to see what the first sees."""
    await asyncio.sleep(0.1)
    first, _ = brokers[0]
    for catalog, _ in brokers[1:]:
        assert catalog.topics == first.topics
        assert catalog.deletions == first.deletions


def test_created_topic_is_visible_when_the_call_returns(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, changes):
            assert catalog.get("orders") is None
            topic = await create(catalog, configs={"retention.ms": "1000"})
            assert (topic.name, topic.id, topic.partitions) == ("orders", ID, 6)
            assert (topic.configs, topic.created_ms) == ({"retention.ms": "1000"}, NOW_MS)
            assert catalog.get("orders") == catalog.topics["orders"] == catalog.by_id[ID] == topic
            assert changes == [(None, topic)]
            entry = await store.get("/kafscale/topics/orders/config")
            assert messages.TopicConfig.FromString(entry.value).partitions == 6
            assert topic.mod_revision == topic.create_revision == entry.mod_revision

    run_with_store(body)


def test_current_waits_for_changes_of_others(run_with_store):
    async def scene(store):
        async with catalogs(store, 2) as ((one, _), (other, _)):
            await other.current()
            await create(one, partitions=2)
            await one.grow("orders", 5)
            await other.current()
            assert other.topics["orders"].partitions == 5

    run_with_store(scene)


def test_topic_survives_a_restart(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, _):
            topic = await create(catalog)
        async with catalogs(store) as (catalog, _):
            assert catalog.topics == {"orders": topic}
            assert catalog.connected

    run_with_store(body)


def test_one_of_many_concurrent_creates_succeeds(run_with_store):
    async def body(store):
        async with catalogs(store, 4) as brokers:
            ids = [bytes([i]) * 16 for i in range(4)]
            outcomes = await asyncio.gather(
                *(create(catalog, topic_id=ids[i]) for i, (catalog, _) in enumerate(brokers)),
                return_exceptions=True,
            )
            [winner] = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
            losers = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            assert [type(loser) for loser in losers] == [TopicExistsError] * 3
            await settled(brokers)
            for catalog, changes in brokers:
                assert catalog.topics == {"orders": winner}
                assert changes == [(None, winner)]

    run_with_store(body)


def test_concurrent_creates_of_different_topics_succeed(run_with_store):
    async def body(store):
        async with catalogs(store, 3) as brokers:
            await asyncio.gather(
                *(
                    create(catalog, f"topic-{i}-{j}", bytes([i, j]) * 8)
                    for i, (catalog, _) in enumerate(brokers)
                    for j in range(5)
                )
            )
            await settled(brokers)
            for catalog, changes in brokers:
                assert set(catalog.topics) == {f"topic-{i}-{j}" for i in range(3) for j in range(5)}
                assert len(catalog.by_id) == len(changes) == 15

    run_with_store(body)


@pytest.mark.parametrize(
    ("name", "partitions", "error"),
    [
        ("orders", 1, TopicExistsError),
        ("a/b", 1, InvalidTopicError),
        ("_wal", 1, InvalidTopicError),
        ("in_voices", 1, InvalidTopicError),
        ("new", 0, InvalidPartitionsError),
        ("new", -1, InvalidPartitionsError),
    ],
)
def test_invalid_topic_is_not_created(run_with_store, name, partitions, error):
    async def body(store):
        async with catalogs(store) as (catalog, changes):
            await create(catalog)
            await create(catalog, "in.voices", OTHER_ID)
            before = dict(catalog.topics)
            changes.clear()
            with pytest.raises(error):
                catalog.check_new(name, partitions)
            with pytest.raises(error):
                await create(catalog, name, bytes(16), partitions)
            assert catalog.topics == before
            assert changes == []

    run_with_store(body)


def test_delete_removes_all_keys_of_a_topic_in_one_commit(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, changes):
            topic = await create(catalog, partitions=300)
            await create(catalog, "orders2", OTHER_ID)
            for partition in range(300):
                await store.commit(
                    [],
                    [
                        Put(keys.partition_state("orders", partition), b""),
                        Put(keys.assignment("orders", partition), b""),
                    ],
                )
            await store.commit([], [Put(keys.partition_state("orders2", 0), b"")])
            before = (await store.range("/kafscale/")).revision
            assert await catalog.delete("orders") == topic
            after = await store.range("/kafscale/")
            assert after.revision == before + 1
            assert [entry.key for entry in after.entries] == [
                "/kafscale/deletions/orders",
                "/kafscale/topics/orders2/config",
                "/kafscale/topics/orders2/partitions/0",
            ]
            assert changes[-1] == (topic, None)
            assert list(catalog.topics) == ["orders2"]
            assert list(catalog.by_id) == [OTHER_ID]
            assert catalog.deletions["orders"].id == ID

    run_with_store(body)


def test_one_of_many_concurrent_deletes_succeeds(run_with_store):
    async def body(store):
        async with catalogs(store, 3) as brokers:
            await create(brokers[0][0])
            outcomes = await asyncio.gather(
                *(catalog.delete("orders") for catalog, _ in brokers), return_exceptions=True
            )
            kinds = sorted(type(outcome).__name__ for outcome in outcomes)
            assert kinds == ["Topic", "UnknownTopicError", "UnknownTopicError"]

    run_with_store(body)


def test_name_is_free_after_the_deletion_finished(run_with_store):
    """Create waits for the deletion, whichever broker finishes it; the new topic is another."""

    async def body(store):
        async with catalogs(store, 2) as brokers:
            (here, changes), (there, _) = brokers
            old = await create(here)
            await here.delete("orders")
            creating = asyncio.create_task(create(here, topic_id=OTHER_ID))
            await asyncio.sleep(5)
            assert not creating.done()
            await there.finish_deletion("orders", ID)
            assert there.deletions == {}
            new = await creating
            assert new.id == OTHER_ID
            assert changes == [(None, old), (old, None), (None, new)]

    run_with_store(body)


def test_create_times_out_with_a_retriable_error(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, _):
            await create(catalog)
            await catalog.delete("orders")
            with pytest.raises(StoreUnavailableError, match="not created within 2000 ms"):
                await create(catalog, topic_id=OTHER_ID, timeout_ms=2000)
            assert asyncio.get_running_loop().time() == pytest.approx(2, abs=0.1)
            assert catalog.topics == {}

    run_with_store(body)


def test_one_of_two_waiting_creates_succeeds(run_with_store):
    async def body(store):
        async with catalogs(store, 2) as brokers:
            (here, _), (there, _) = brokers
            await create(here)
            await here.delete("orders")
            waiting = asyncio.gather(
                create(here, topic_id=OTHER_ID),
                create(there, topic_id=bytes(16)),
                return_exceptions=True,
            )
            await asyncio.sleep(1)
            await here.finish_deletion("orders", ID)
            kinds = sorted(type(outcome).__name__ for outcome in await waiting)
            assert kinds == ["Topic", "TopicExistsError"]

    run_with_store(body)


def test_deletions_survive_a_restart_and_finish_once(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, _):
            await create(catalog)
            deleted = await catalog.delete("orders")
        async with catalogs(store) as (catalog, _):
            assert catalog.deletions["orders"].id == deleted.id
            assert catalog.deletions["orders"].partitions == deleted.partitions
            await catalog.finish_deletion("orders", OTHER_ID)
            assert list(catalog.deletions) == ["orders"]
            await catalog.finish_deletion("orders", ID)
            await catalog.finish_deletion("orders", ID)
            assert catalog.deletions == {}

    run_with_store(body)


def test_partitions_can_only_be_added(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, changes):
            before = await create(catalog)
            after = await catalog.grow("orders", 9)
            assert after == catalog.get("orders")
            assert after == replace(before, partitions=9, version=2, mod_revision=2)
            assert changes[-1] == (before, after)
            for partitions in (9, 8, 0):
                with pytest.raises(InvalidPartitionsError):
                    await catalog.grow("orders", partitions)
            assert catalog.get("orders") == after

    run_with_store(body)


def test_concurrent_config_changes_are_all_kept(run_with_store):
    async def body(store):
        async with catalogs(store, 3) as brokers:
            await create(brokers[0][0])
            await asyncio.gather(
                *(
                    catalog.set_configs("orders", lambda old, i=i, j=j: {**old, f"{i}.{j}": "x"})
                    for i, (catalog, _) in enumerate(brokers)
                    for j in range(4)
                )
            )
            await settled(brokers)
            for catalog, changes in brokers:
                topic = catalog.topics["orders"]
                assert set(topic.configs) == {f"{i}.{j}" for i in range(3) for j in range(4)}
                assert topic.version == 13
                assert [after.version for _, after in changes] == list(range(1, 14))

    run_with_store(body)


def test_change_without_effect_is_not_written(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, changes):
            topic = await create(catalog, configs={"retention.ms": "1000"})
            assert await catalog.set_configs("orders", dict) == topic
            assert (await store.range("/")).revision == topic.mod_revision
            assert len(changes) == 1

    run_with_store(body)


@pytest.mark.parametrize("name", ["none", "", "a/config", "_wal"])
def test_missing_topic_cannot_be_changed(run_with_store, name):
    async def body(store):
        async with catalogs(store) as (catalog, _):
            for change in (
                catalog.delete(name),
                catalog.grow(name, 2),
                catalog.set_configs(name, dict),
            ):
                with pytest.raises(UnknownTopicError):
                    await change

    run_with_store(body)


def test_recreated_topic_is_reported_as_deletion_and_creation(run_with_store):
    """A broker that is cut off meanwhile must not take the new topic for the old one."""

    async def body(real):
        store = InterruptibleStore(real)
        async with catalogs(real) as (there, _):
            here, changes = Catalog(store), []
            await here.start()
            here.subscribe(lambda before, after: changes.append((before, after)))
            old = await create(there)
            await asyncio.sleep(1)
            store.interrupted = True
            await there.delete("orders")
            await there.finish_deletion("orders", ID)
            new = await create(there, topic_id=OTHER_ID)
            for i in range(20):
                await real.commit([], [Put("/filler", b"%d" % i)])
            store.interrupted = False
            await asyncio.sleep(1)
            assert changes == [(None, old), (old, None), (None, new)]
            assert here.by_id == {OTHER_ID: new}
            await here.close()

    run_with_store(body, commits_max=8)


def test_damaged_record_is_ignored(run_with_store):
    async def body(store):
        async with catalogs(store) as (catalog, changes):
            topic = await create(catalog)
            await store.commit([], [Put(keys.topic_config("orders"), b"\xff\xff")])
            await store.commit([], [Put(keys.topic_config("other"), b"\xff\xff")])
            await create(catalog, "last", OTHER_ID)
            assert list(catalog.topics) == ["orders", "last"]
            assert catalog.get("orders") == topic
            assert len(changes) == 2

    run_with_store(body)


def test_failing_listener_does_not_affect_others(run_with_store):
    async def body(store):
        catalog, changes = Catalog(store), []
        catalog.subscribe(lambda _before, _after: 1 / 0)
        catalog.subscribe(lambda _before, after: changes.append(after))
        await catalog.start()
        first = await create(catalog)
        second = await create(catalog, "more", OTHER_ID)
        assert changes == [first, second]
        await catalog.close()

    run_with_store(body)


def test_change_that_does_not_become_visible_times_out(run_with_store):
    async def body(real):
        store = InterruptibleStore(real)
        catalog = Catalog(store, timeout_ms=3000)
        await catalog.start()
        store.interrupted = True
        with pytest.raises(StoreUnavailableError, match="within 3000 ms"):
            await create(catalog)
        assert not catalog.connected
        store.interrupted = False
        await asyncio.sleep(1)
        assert "orders" in catalog.topics
        await catalog.close()

    run_with_store(body)
