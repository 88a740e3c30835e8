"""Confirmations that a broker serves a deleted topic no more."""

import asyncio

import msgspec

from doubles.faulty_object_store import Fault, Rule
from kafscale.broker.cluster.closed_topics import ClosedTopics
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.storage.segments.segment_writer import RollReason
from unit.broker.cluster.test_node import is_served, simulate, until, write

DELETE = frozenset({"delete"})


def test_next_controller_completes_a_deletion():
    """The first controller has closed the topic as well, and remains a broker of the cluster."""

    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        await until(lambda: first.node.controller.is_active)
        await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        for broker in (first, second):
            for log in broker.services.storage.logs.of_topic("orders"):
                await write(broker, log.partition, b"x")
                await broker.services.storage.roll_scheduler.roll(log, RollReason.EXPLICIT)
        rule = Rule(fault=Fault.DENIED, operations=DELETE, keys="*/orders/*")
        cluster.stores.objects.rules.append(rule)
        await first.services.topic_store.delete("orders")
        await asyncio.sleep(1)
        epoch = first.services.registration.broker.epoch
        lease = second.services.registration.broker.lease
        await cluster.stores.metadata.commit((), [Put(keys.CONTROLLER, b"2", lease)])
        await until(lambda: second.node.controller.is_active)
        assert not first.node.controller.is_active
        cluster.stores.objects.rules.remove(rule)
        await until(lambda: "orders" in second.services.topic_store.retired, seconds=10)
        assert first.services.registration.broker.epoch == epoch
        left = (await cluster.stores.metadata.range(keys.CLOSED_TOPICS)).entries
        assert left == (), "confirmations are deleted with the deletion"

    simulate(body)


def test_late_confirmation_of_a_former_session_does_not_replace_that_of_the_current():
    """The former session's commit may take effect at any later time."""

    async def body(cluster):
        first, second = await cluster.broker(1), await cluster.broker(2)
        topic = await first.topic("orders", 2)
        await until(lambda: is_served(first, 1) and is_served(second, 1))
        rule = Rule(fault=Fault.DENIED, operations=DELETE, keys="*/orders/*")
        cluster.stores.objects.rules.append(rule)
        for log in second.services.storage.logs.of_topic("orders"):
            await write(second, log.partition, b"x")
            await second.services.storage.roll_scheduler.roll(log, RollReason.EXPLICIT)
        await first.services.topic_store.delete("orders")
        services = first.services
        closed_topics = ClosedTopics(
            cluster.stores.metadata,
            services.cluster,
            services.topic_store,
            broker_id=first.services.registration.broker.id,
            clock=services.clock,
        )
        await asyncio.wait_for(closed_topics.wait_until_closed(topic), 5)
        current = second.services.registration.broker
        former = msgspec.structs.replace(current, epoch=current.epoch - 1)
        await closed_topics.confirm(topic, former)
        await asyncio.wait_for(closed_topics.wait_until_closed(topic), 5)

    simulate(body)
