"""What is known of the logs of others; the asking itself is tested on a real cluster."""

import asyncio

from kafscale.broker.watermarks import STALE_MS, Watermarks
from kafscale.groups.offsets import CommittedOffset
from kafscale.testing import virtual_time
from unit.broker.handlers.serving import serve


def watermarks(broker):
    services = broker.services
    return Watermarks(
        services.storage.logs,
        services.groups,
        services.cluster,
        broker_id=services.node_id,
        steady=virtual_time.clock_ms,
    )


async def commit(broker, topic, partition, offset):
    await broker.services.groups.commit(
        "readers", "", None, -1,
        {(topic, partition): CommittedOffset(offset=offset, committed_ms=virtual_time.clock_ms())},
        version_knows_missing_groups=True,
    )  # fmt: skip


def test_the_logs_of_this_broker_are_looked_at():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1, 2, 3)
        known = watermarks(broker)
        assert known.get("orders", 0) == 3
        await commit(broker, "orders", 0, 1)
        assert list(known.lags()) == [("readers", "orders", 0, 2)]
        assert known._to_ask() == [], "nobody has to be asked for what is here"

    serve(body)


def test_what_nobody_has_told_is_left_out():
    async def body(broker):
        await broker.topic("orders")
        known = watermarks(broker)
        await commit(broker, "orders", 0, 0)
        broker.node.ownership.close(("orders", 0))
        assert known.get("orders", 0) is None
        assert list(known.lags()) == []

    serve(body)


def test_what_was_told_is_believed_for_a_while():
    async def body(broker):
        known = watermarks(broker)
        known._told["orders", 1] = (7, virtual_time.clock_ms())
        assert known.get("orders", 1) == 7
        await asyncio.sleep(STALE_MS / 1000)
        assert known.get("orders", 1) is None

    serve(body)
