"""Elections: at most one controller can write, whatever the others believe."""

import asyncio

from kafscale.metadata.schema import keys
from unit.broker.cluster.controller_cluster import simulate


def test_one_of_many_candidates_is_elected():
    async def body(cluster):
        await asyncio.gather(*(cluster.node(number) for number in range(7)))
        await asyncio.sleep(0.1)
        assert len(cluster.controllers) == 1

    simulate(body)


def test_draining_broker_does_not_become_controller():
    async def body(cluster):
        await cluster.topic("orders", 20)
        for number in (1, 2, 3):
            await cluster.node(number)
        await cluster.wait_until_balanced()
        first = cluster.controller
        second, third = [node for node in cluster.nodes.values() if node is not first]
        await second.drain()
        for _ in range(10):
            await asyncio.sleep(0.05)
            await cluster.transfer_all()
        assert cluster.is_assigned()
        assert second.broker_id not in cluster.owners("orders").values()
        await first.leave()
        await cluster.wait_until_assigned()
        assert cluster.controller is third
        await third.leave()
        await cluster.wait_until_assigned()
        assert cluster.controller is second, "it is the last one"

    simulate(body, moves_max=100)


def test_stale_controller_writes_nothing():
    """It was paused, and continues with a stale cache: the store rejects all its writes."""

    async def body(cluster):
        await cluster.topic("orders", 10)
        stale = await cluster.node(1)
        await cluster.wait_until_assigned()
        stale.store.late = {keys.BROKERS, keys.CONTROLLER, keys.ASSIGNMENTS}
        other = await cluster.node(2)
        await cluster.store.revoke(stale.broker.lease)
        await asyncio.sleep(0.1)
        assert cluster.cache.controller_id == 2
        assert set(cluster.owners("orders").values()) == {2}
        assert stale.controller.is_controller, "as far as it knows"
        stale.store.commits.clear()
        await cluster.topic("payments", 3)
        await asyncio.sleep(2)
        assert stale.store.commits
        assert not any(done.succeeded for *_, done in stale.store.commits)
        assert set(cluster.owners("payments").values()) == {2}
        stale.store.late.clear()
        await asyncio.sleep(0.1)
        assert cluster.controllers == [2]
        assert other.streams.fences == [(1, 1)]
        assert stale.streams.fences == []

    simulate(body)


def test_end_of_session_stops_duties_and_next_session_campaigns_again():
    async def body(cluster):
        node = await cluster.node(1)
        await cluster.wait_until_assigned()
        node.controller.end_session()
        assert not node.controller.is_controller
        await cluster.topic("orders", 3)
        await asyncio.sleep(5)
        assert cluster.owners("orders") == {}
        node.controller.start_session(node.broker)
        assert await cluster.wait_until_assigned() < 0.1

    simulate(body)
