"""Topics that are deleted and created again: the new one never meets what the old one left."""

import asyncio

import pytest
from structlog.testing import capture_logs

from doubles import virtual_time
from doubles.faulty_object_store import Fault, Rule
from kafscale.broker.topics import FORGET_AFTER_MS, SWEEP_AFTER_MS, Topics
from kafscale.errors import StoreUnavailableError, UnknownTopicIdError
from kafscale.metadata.schema import keys
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.storage.segments.segment_writer import RollReason
from unit.broker.cluster.test_node import is_served, leaders, simulate, until, write
from unit.broker.cluster.unreachable_store import UnreachableStore
from unit.broker.in_memory_broker import Stores, running_broker
from unit.storage.engines import values_batch

GET_SUFFIX = frozenset({"get_suffix"})
PUT = frozenset({"put"})
LIST = frozenset({"list"})


class LateWatchStore(UnreachableStore):
    """A metadata store whose watch of topics lags while `is_late` is set."""

    is_late = False

    async def watch(self, prefix, after_revision):
        async for events in super().watch(prefix, after_revision):
            while self.is_late and prefix == keys.TOPICS:  # noqa: ASYNC110 - a test sets it.
                await asyncio.sleep(0.01)
            yield events


async def produce_by_name(broker, partition):
    """Produce in a version without topic ids; return the response for the partition."""
    records = memoryview(values_batch([b"acknowledged"]).buffer)
    sent = TopicToProduce(
        name="orders", partitions=[PartitionToProduce(index=partition, records=records)]
    )
    response = await broker.ask(
        PRODUCE, ProduceRequest(acks=-1, timeout_ms=5000, topics=[sent]), version=9
    )
    return response.topics[0].partitions[0]


async def roll_all(broker, topic):
    for log in broker.services.storage.logs.of_topic(topic):
        await broker.services.storage.roll_scheduler.roll(log, RollReason.EXPLICIT)


async def object_keys(cluster, text):
    listing = cluster.stores.objects.list("default/")
    return [item.key async for chunk in listing for item in chunk if text in item.key]


def test_deleted_topic_frees_the_wal():
    """Its records pin no WAL object, although nothing rolls them any more."""

    async def body(cluster):
        broker = await cluster.broker(1)
        running = asyncio.create_task(broker.services.storage.run())
        await broker.topic("orders")
        await broker.topic("temporary")
        await broker.write("temporary", virtual_time.clock_ms())
        await broker.services.topic_store.delete("temporary")
        for _ in range(40):
            await broker.write("orders", virtual_time.clock_ms())
            await asyncio.sleep(60)
        assert len(await object_keys(cluster, "/_wal/")) < 15
        running.cancel()

    simulate(body)


def test_broker_with_a_late_watch_acknowledges_nothing_for_the_old_topic():
    """The name is not free before that broker has closed the old topic."""

    async def body(cluster):
        first = await cluster.broker(1)
        stores = Stores()
        stores.objects, stores.metadata = (
            cluster.stores.objects,
            LateWatchStore(cluster.stores.metadata),
        )
        async with running_broker(stores, node_id=2) as second:
            await first.topic("orders", 2)
            await until(lambda: is_served(first, 1) and is_served(second, 1))
            partition = leaders(first).index(2)
            stores.metadata.is_late = True
            await first.services.topic_store.delete("orders")
            creating = asyncio.create_task(first.topic("orders", 2))
            (outcome,) = await asyncio.gather(creating, return_exceptions=True)
            assert isinstance(outcome, StoreUnavailableError | TimeoutError), outcome
            stores.metadata.is_late = False
            new = await first.topic("orders", 2)
            await until(lambda: is_served(first, 1) and is_served(second, 1))
            assert new.directory == f"orders@{new.id.hex()}"
            for broker in (first, second):
                for log in broker.services.storage.logs.of_topic("orders"):
                    assert (log.topic_id, log.directory) == (new.id, new.directory)
            assert (await produce_by_name(second, partition)).error_code in {0, 6}

    simulate(body)


def test_assignment_of_a_newer_topic_opens_no_log_of_the_old_one():
    """The watch of assignments may be ahead of the watch of topics."""

    async def body(cluster):
        first = await cluster.broker(1)
        stores = Stores()
        stores.objects, stores.metadata = (
            cluster.stores.objects,
            LateWatchStore(cluster.stores.metadata),
        )
        async with running_broker(stores, node_id=2) as second:
            old = await first.topic("orders", 2)
            await until(lambda: is_served(first, 1) and is_served(second, 1))
            stores.metadata.is_late = True
            await first.services.topic_store.delete("orders")
            tombstone = first.services.topic_store.deletions["orders"]
            controller = await cluster.stores.metadata.get(keys.CONTROLLER)
            # As if the other broker had confirmed, which it does only when it has closed the topic.
            await first.services.topic_store.mark_emptied(tombstone, 1, controller)
            new = await first.topic("orders", 2)
            await asyncio.sleep(5)
            assert second.services.topic_store.get("orders").id == old.id
            assert second.services.storage.logs.of_topic("orders") == []
            stores.metadata.is_late = False
            await until(lambda: is_served(second, 1))
            (log,) = second.services.storage.logs.of_topic("orders")
            assert log.topic_id == new.id

    simulate(body)


def test_topic_recreated_while_its_logs_are_opened_is_served_with_the_new_id():
    async def body(cluster):
        first = await cluster.broker(1)
        await first.topic("large", 12)
        for number in range(12):
            await write(first, number, b"x", topic="large")
        await roll_all(first, "large")
        cluster.stores.objects.rules.append(
            Rule(fault=Fault.SLOW, operations=GET_SUFFIX, keys="*/large/*", seconds=(3, 3))
        )
        joining = asyncio.create_task(cluster.broker(2))
        await asyncio.sleep(1)
        await first.services.topics.create("orders", 6, {}, 30_000)
        await asyncio.sleep(3.5)
        await first.services.topic_store.delete("orders")
        new = await first.services.topics.create("orders", 6, {}, 30_000)
        second = await joining
        await asyncio.sleep(30)
        logs = [
            log
            for broker in (first, second)
            for log in broker.services.storage.logs.of_topic("orders")
        ]
        assert {log.partition for log in logs} == set(range(6))
        assert {log.topic_id for log in logs} == {new.id}

    simulate(body)


def test_topic_recreated_during_a_takeover_stops_no_other_partition():
    async def body(cluster):
        second = await cluster.broker(2)

        async def work_and_die(first):
            for name in ("orders", "payments"):
                await first.topic(name, 6)
                await until(lambda: is_served(first, 3, name))  # noqa: B023 - awaited at once.
                for log in first.services.storage.logs.of_topic(name):
                    await write(first, log.partition, b"x", topic=name)

        await cluster.dying_broker(1, work_and_die)
        cluster.stores.objects.rules.append(
            Rule(fault=Fault.SLOW, operations=LIST, keys="*/payments/*", seconds=(5, 5))
        )
        await until(lambda: leaders(second) == [2] * 6)
        await second.services.topic_store.delete("orders")
        new = await second.services.topics.create("orders", 6, {}, 30_000)
        await until(lambda: is_served(second, 6), 4)
        assert not is_served(second, 6, "payments")
        await until(lambda: is_served(second, 6, "payments"), 30)
        await until(lambda: second.node.ownership.is_up_to_date, 30)
        logs = second.services.storage.logs.of_topic("orders")
        assert [log.topic_id for log in logs] == [new.id] * 6
        assert not [line for line in lines if line["log_level"] == "error"]

    with capture_logs() as lines:
        simulate(body)


@pytest.mark.parametrize("deletions", [1, 2])
def test_late_segment_of_a_deleted_topic_is_never_read_and_deleted_later(deletions):
    """A PUT of the old topic takes effect after the new topic has records."""

    async def body(cluster):
        broker = await cluster.broker(1)
        await broker.topic("orders")
        await broker.write("orders", *range(10))
        cluster.stores.objects.rules.append(
            Rule(
                fault=Fault.APPLIED_LATER,
                operations=PUT,
                keys="*/orders/0/*.kfs",
                times_max=1,
                seconds=(600, 600),
            )
        )
        rolling = asyncio.create_task(roll_all(broker, "orders"))
        await asyncio.sleep(0)
        await broker.services.topic_store.delete("orders")
        await asyncio.gather(rolling, return_exceptions=True)
        new = await broker.topic("orders")
        for _ in range(deletions - 1):
            await broker.services.topic_store.delete("orders")
            new = await broker.topic("orders")
        for _ in range(3):
            await broker.write("orders", virtual_time.clock_ms())
        await roll_all(broker, "orders")
        await asyncio.sleep(700)
        late = "default/orders/0/segment-00000000000000000000.kfs"
        assert late in await object_keys(cluster, ".kfs")
        assert broker.log("orders").end_offset == 3
        assert len(await object_keys(cluster, f"{new.directory}/0/segment-")) == 2
        controller = await cluster.stores.metadata.get(keys.CONTROLLER)
        await topics_later(broker, SWEEP_AFTER_MS).sweep(controller)
        assert late not in await object_keys(cluster, ".kfs")
        assert len(await object_keys(cluster, f"{new.directory}/0/segment-")) == 2
        assert list(broker.services.topic_store.retired) == ["orders"]
        await topics_later(broker, FORGET_AFTER_MS).sweep(controller)
        assert broker.services.topic_store.retired == {}
        assert await cluster.stores.metadata.get(keys.deletion("orders")) is None

    simulate(body)


def test_late_deletion_by_id_does_not_delete_the_topic_created_since():
    async def body(cluster):
        broker = await cluster.broker(1)
        old = await broker.services.topics.create("orders", 1, {}, 30_000)
        await broker.services.topic_store.delete("orders", old.id)
        new = await broker.services.topics.create("orders", 1, {}, 30_000)
        with pytest.raises(UnknownTopicIdError):
            await broker.services.topic_store.delete("orders", old.id)
        assert broker.services.topic_store.get("orders").id == new.id

    simulate(body)


@pytest.mark.parametrize("listing", [None, Fault.DENIED, Fault.SLOW])
def test_new_topic_never_meets_unknown_objects(listing):
    """They may be all that is left of a topic whose metadata was lost; in doubt they exist."""

    async def body(cluster):
        broker = await cluster.broker(1)
        unknown = "default/orders/0/segment-00000000000000000000.kfs"
        await cluster.stores.objects.put(unknown, [b"unknown"])
        if listing is not None:
            cluster.stores.objects.rules.append(
                Rule(fault=listing, operations=LIST, keys="*/orders/*", seconds=(60, 60))
            )
        topic = await broker.services.topics.create("orders", 1, {}, 30_000)
        cluster.stores.objects.rules.clear()
        assert topic.directory == f"orders@{topic.id.hex()}"
        await until(lambda: is_served(broker, 1))
        assert broker.log("orders").end_offset == 0
        await broker.write("orders", virtual_time.clock_ms())
        await roll_all(broker, "orders")
        await broker.services.topic_store.delete("orders")
        await broker.services.topics.create("orders", 1, {}, 30_000)
        controller = await cluster.stores.metadata.get(keys.CONTROLLER)
        await topics_later(broker, SWEEP_AFTER_MS).sweep(controller)
        assert await object_keys(cluster, "/orders/") == [unknown]
        other = await broker.services.topics.create("payments", 1, {}, 30_000)
        assert other.directory == "payments"

    simulate(body)


def topics_later(broker, later_ms):
    """The duties of a broker as if that much time had passed."""
    ownership = broker.node.ownership
    return Topics(
        broker.services.topic_store,
        wait_for_leaders=ownership.wait_for_leaders,
        wait_until_closed=ownership.wait_for_leaders,
        has_objects=broker.services.storage.has_objects,
        delete_objects=broker.services.storage.delete_objects,
        clock=lambda: virtual_time.clock_ms() + later_ms,
    )
