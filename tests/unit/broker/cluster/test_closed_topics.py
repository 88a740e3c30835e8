"""Confirmations that a broker serves a deleted topic no more."""

import asyncio

from doubles.faulty_object_store import Fault, Rule
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
