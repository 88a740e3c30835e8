"""`TopicStore`: topics as brokers see and change them; each "broker" is a topic store."""

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
    UnknownTopicIdError,
)
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.metadata.topics.store import TopicStore
from unit.metadata.finished_deletion import EMPTIED_MS, finish_deletion
from unit.metadata.interruptible_store import InterruptibleStore

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))
NOW_MS = 1_736_937_000_000


@asynccontextmanager
async def topic_stores(store, count=1):
    """Topic stores that share one store, each with the list of its reported changes."""
    created = [(TopicStore(store), []) for _ in range(count)]
    for broker, changes in created:
        await broker.start()
        broker.subscribe(lambda before, after, changes=changes: changes.append((before, after)))
    yield created if count > 1 else created[0]
    for broker, _ in created:
        await broker.close()


async def create(broker, name="orders", topic_id=ID, partitions=6, configs=None, **options):
    return await broker.create(name, partitions, configs or {}, NOW_MS, topic_id, **options)


async def settled(brokers):
    """Give all brokers a moment to see what the first sees."""
    await asyncio.sleep(0.1)
    first, _ = brokers[0]
    for broker, _ in brokers[1:]:
        assert broker.topics == first.topics
        assert broker.deletions == first.deletions


def test_created_topic_is_visible_when_the_call_returns(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, changes):
            assert broker.get("orders") is None
            topic = await create(broker, configs={"retention.ms": "1000"})
            assert (topic.name, topic.id, topic.partitions) == ("orders", ID, 6)
            assert (topic.configs, topic.created_ms) == ({"retention.ms": "1000"}, NOW_MS)
            assert broker.get("orders") == broker.topics["orders"] == broker.by_id[ID] == topic
            assert changes == [(None, topic)]
            entry = await store.get("/kafscale/topics/orders/config")
            assert messages.TopicConfig.FromString(entry.value).partitions == 6
            assert topic.mod_revision == topic.create_revision == entry.mod_revision

    run_with_store(body)


def test_current_waits_for_changes_of_others(run_with_store):
    async def scene(store):
        async with topic_stores(store, 2) as ((one, _), (other, _)):
            await other.current()
            await create(one, partitions=2)
            await one.grow("orders", 5)
            await other.current()
            assert other.topics["orders"].partitions == 5

    run_with_store(scene)


def test_topic_survives_a_restart(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, _):
            topic = await create(broker)
        async with topic_stores(store) as (broker, _):
            assert broker.topics == {"orders": topic}
            assert broker.connected

    run_with_store(body)


def test_one_of_many_concurrent_creates_succeeds(run_with_store):
    async def body(store):
        async with topic_stores(store, 4) as brokers:
            ids = [bytes([i]) * 16 for i in range(4)]
            outcomes = await asyncio.gather(
                *(create(broker, topic_id=ids[i]) for i, (broker, _) in enumerate(brokers)),
                return_exceptions=True,
            )
            [winner] = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
            losers = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            assert [type(loser) for loser in losers] == [TopicExistsError] * 3
            await settled(brokers)
            for broker, changes in brokers:
                assert broker.topics == {"orders": winner}
                assert changes == [(None, winner)]

    run_with_store(body)


def test_concurrent_creates_of_different_topics_succeed(run_with_store):
    async def body(store):
        async with topic_stores(store, 3) as brokers:
            await asyncio.gather(
                *(
                    create(broker, f"topic-{i}-{j}", bytes([i, j]) * 8)
                    for i, (broker, _) in enumerate(brokers)
                    for j in range(5)
                )
            )
            await settled(brokers)
            for broker, changes in brokers:
                assert set(broker.topics) == {f"topic-{i}-{j}" for i in range(3) for j in range(5)}
                assert len(broker.by_id) == len(changes) == 15

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
        async with topic_stores(store) as (broker, changes):
            await create(broker)
            await create(broker, "in.voices", OTHER_ID)
            before = dict(broker.topics)
            changes.clear()
            with pytest.raises(error):
                broker.check_new(name, partitions)
            with pytest.raises(error):
                await create(broker, name, bytes(16), partitions)
            assert broker.topics == before
            assert changes == []

    run_with_store(body)


def test_delete_removes_all_keys_of_a_topic_in_one_commit(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, changes):
            topic = await create(broker, partitions=300)
            await create(broker, "orders2", OTHER_ID)
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
            assert await broker.delete("orders") == topic
            after = await store.range("/kafscale/")
            assert after.revision == before + 1
            assert [entry.key for entry in after.entries] == [
                "/kafscale/deletions/orders",
                "/kafscale/topics/orders2/config",
                "/kafscale/topics/orders2/partitions/0",
            ]
            assert changes[-1] == (topic, None)
            assert list(broker.topics) == ["orders2"]
            assert list(broker.by_id) == [OTHER_ID]
            assert broker.deletions["orders"].id == ID

    run_with_store(body)


def test_one_of_many_concurrent_deletes_succeeds(run_with_store):
    async def body(store):
        async with topic_stores(store, 3) as brokers:
            await create(brokers[0][0])
            outcomes = await asyncio.gather(
                *(broker.delete("orders") for broker, _ in brokers), return_exceptions=True
            )
            kinds = sorted(type(outcome).__name__ for outcome in outcomes)
            assert kinds == ["Topic", "UnknownTopicError", "UnknownTopicError"]

    run_with_store(body)


def test_name_is_free_after_the_deletion_finished(run_with_store):
    """Create waits for the deletion, whichever broker finishes it; the new topic is another."""

    async def body(store):
        async with topic_stores(store, 2) as brokers:
            (here, changes), (there, _) = brokers
            old = await create(here)
            await here.delete("orders")
            creating = asyncio.create_task(create(here, topic_id=OTHER_ID))
            await asyncio.sleep(5)
            assert not creating.done()
            await finish_deletion(store, there, "orders")
            assert there.deletions == {}
            new = await creating
            assert new.id == OTHER_ID
            assert (old.directory, new.directory) == ("orders", f"orders@{OTHER_ID.hex()}")
            assert changes == [(None, old), (old, None), (None, new)]

    run_with_store(body)


def test_create_times_out_with_a_retriable_error(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, _):
            await create(broker)
            await broker.delete("orders")
            with pytest.raises(StoreUnavailableError, match="not created within 2000 ms"):
                await create(broker, topic_id=OTHER_ID, timeout_ms=2000)
            assert asyncio.get_running_loop().time() == pytest.approx(2, abs=0.1)
            assert broker.topics == {}

    run_with_store(body)


def test_one_of_two_waiting_creates_succeeds(run_with_store):
    async def body(store):
        async with topic_stores(store, 2) as brokers:
            (here, _), (there, _) = brokers
            await create(here)
            await here.delete("orders")
            waiting = asyncio.gather(
                create(here, topic_id=OTHER_ID),
                create(there, topic_id=bytes(16)),
                return_exceptions=True,
            )
            await asyncio.sleep(1)
            await finish_deletion(store, here, "orders")
            kinds = sorted(type(outcome).__name__ for outcome in await waiting)
            assert kinds == ["Topic", "TopicExistsError"]

    run_with_store(body)


def test_deletions_survive_a_restart_and_finish_once(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, _):
            await create(broker)
            deleted = await broker.delete("orders")
        async with topic_stores(store) as (broker, _):
            assert broker.deletions["orders"].id == deleted.id
            assert broker.deletions["orders"].partitions == deleted.partitions
            tombstone = broker.deletions["orders"]
            await finish_deletion(store, broker, "orders")
            assert broker.deletions == {}
            (retired,) = broker.retired.values()
            assert (retired.id, retired.emptied_ms) == (deleted.id, EMPTIED_MS)
            controller = await store.get(keys.CONTROLLER)
            await broker.mark_emptied(tombstone, 99, controller)
            assert broker.retired["orders"] == retired, "once"
            await store.commit([], [Put(keys.CONTROLLER, b"2")])
            await broker.remove_tombstone(retired, controller)
            assert broker.retired["orders"] == retired, "not by a former controller"
            await broker.remove_tombstone(retired, await store.get(keys.CONTROLLER))
            assert broker.retired == {}
            assert (await create(broker, topic_id=OTHER_ID)).directory == "orders"

    run_with_store(body)


def test_requested_replicas_are_kept_with_the_topic(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, _):
            created = await create(broker, partitions=2, replicas={0: (2, 1), 1: (1, 2)})
            await broker.request_replicas("orders", ID, {0: (3,)})
            after = await broker.grow("orders", 4, [(5,), (6, 5)])
            assert after.replicas == {0: (3,), 1: (1, 2), 2: (5,), 3: (6, 5)}
            assert broker.get("orders") == after
            with pytest.raises(UnknownTopicIdError):
                await broker.request_replicas("orders", OTHER_ID, {0: (1,)})
            assert created.replicas == {0: (2, 1), 1: (1, 2)}

    run_with_store(body)


def test_partitions_can_only_be_added(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, changes):
            before = await create(broker)
            after = await broker.grow("orders", 9)
            assert after == broker.get("orders")
            assert after == replace(before, partitions=9, version=2, mod_revision=2)
            assert changes[-1] == (before, after)
            for partitions in (9, 8, 0):
                with pytest.raises(InvalidPartitionsError):
                    await broker.grow("orders", partitions)
            assert broker.get("orders") == after

    run_with_store(body)


def test_concurrent_config_changes_are_all_kept(run_with_store):
    async def body(store):
        async with topic_stores(store, 3) as brokers:
            await create(brokers[0][0])
            await asyncio.gather(
                *(
                    broker.set_configs("orders", lambda old, i=i, j=j: {**old, f"{i}.{j}": "x"})
                    for i, (broker, _) in enumerate(brokers)
                    for j in range(4)
                )
            )
            await settled(brokers)
            for broker, changes in brokers:
                topic = broker.topics["orders"]
                assert set(topic.configs) == {f"{i}.{j}" for i in range(3) for j in range(4)}
                assert topic.version == 13
                assert [after.version for _, after in changes] == list(range(1, 14))

    run_with_store(body)


def test_change_without_effect_is_not_written(run_with_store):
    async def body(store):
        async with topic_stores(store) as (broker, changes):
            topic = await create(broker, configs={"retention.ms": "1000"})
            assert await broker.set_configs("orders", dict) == topic
            assert (await store.range("/")).revision == topic.mod_revision
            assert len(changes) == 1

    run_with_store(body)


@pytest.mark.parametrize("name", ["none", "", "a/config", "_wal"])
def test_missing_topic_cannot_be_changed(run_with_store, name):
    async def body(store):
        async with topic_stores(store) as (broker, _):
            for change in (
                broker.delete(name),
                broker.grow(name, 2),
                broker.set_configs(name, dict),
            ):
                with pytest.raises(UnknownTopicError):
                    await change

    run_with_store(body)


def test_recreated_topic_is_reported_as_deletion_and_creation(run_with_store):
    """A broker that is cut off meanwhile must not take the new topic for the old one."""

    async def body(real):
        store = InterruptibleStore(real)
        async with topic_stores(real) as (there, _):
            here, changes = TopicStore(store), []
            await here.start()
            here.subscribe(lambda before, after: changes.append((before, after)))
            old = await create(there)
            await asyncio.sleep(1)
            store.interrupted = True
            await there.delete("orders")
            await finish_deletion(real, there, "orders")
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
        async with topic_stores(store) as (broker, changes):
            topic = await create(broker)
            await store.commit([], [Put(keys.topic_config("orders"), b"\xff\xff")])
            await store.commit([], [Put(keys.topic_config("other"), b"\xff\xff")])
            await create(broker, "last", OTHER_ID)
            assert list(broker.topics) == ["orders", "last"]
            assert broker.get("orders") == topic
            assert len(changes) == 2

    run_with_store(body)


def test_failing_listener_does_not_affect_others(run_with_store):
    async def body(store):
        broker, changes = TopicStore(store), []
        broker.subscribe(lambda _before, _after: 1 / 0)
        broker.subscribe(lambda _before, after: changes.append(after))
        await broker.start()
        first = await create(broker)
        second = await create(broker, "more", OTHER_ID)
        assert changes == [first, second]
        await broker.close()

    run_with_store(body)


def test_change_that_does_not_become_visible_times_out(run_with_store):
    async def body(real):
        store = InterruptibleStore(real)
        broker = TopicStore(store, timeout_ms=3000)
        await broker.start()
        store.interrupted = True
        with pytest.raises(StoreUnavailableError, match="within 3000 ms"):
            await create(broker)
        assert not broker.connected
        store.interrupted = False
        await asyncio.sleep(1)
        assert "orders" in broker.topics
        await broker.close()

    run_with_store(body)
