"""The controller: after its election, every partition and shard is owned by a live broker."""

import asyncio

import pytest
import structlog

from kafscale.errors import InvalidRequestError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC
from unit.broker.cluster.controller_cluster import TTL_MS, simulate


def test_single_broker_is_controller_and_owns_everything():
    async def body(cluster):
        await cluster.topic("orders", 6)
        await cluster.node(1)
        assert await cluster.wait_until_assigned() < 0.1
        assert cluster.controllers == [1]
        assert cluster.cache.controller_id == 1
        assert set(cluster.owners("orders").values()) == {1}
        assert len(cluster.owners(SHARDS_TOPIC)) == SHARD_COUNT

    simulate(body)


def test_controller_assigns_nothing_before_a_restore_is_complete():
    async def body(cluster):
        await cluster.topic("orders", 6)
        elected = []
        node = await cluster.node(1)
        node.restorer.seconds = 5
        node.restorer.failures = [RuntimeError("a bug"), StoreUnavailableError("not now")]
        node.controller.on_elected(lambda: elected.append(node.controller.is_active))
        with structlog.testing.capture_logs() as logs:
            await asyncio.sleep(14)
        assert cluster.controllers == [1]
        assert (cluster.owners("orders"), elected, node.restorer.terms) == ({}, [], [])
        assert [line["event"] for line in logs if line.get("duty") == "restore"] == [
            "controller duty not done yet",
            "controller duty failed",
        ]
        await cluster.wait_until_assigned(10)
        assert (elected, len(node.restorer.terms)) == ([True], 1)
        await node.leave()
        await asyncio.sleep(0.1)
        assert not node.controller.is_active

    simulate(body)


def test_term_can_end_during_a_restore():
    async def body(cluster):
        await cluster.topic("orders", 6)
        first = await cluster.node(1)
        first.restorer.seconds = 3600
        await asyncio.sleep(1)
        second = await cluster.node(2)
        await first.leave()
        await cluster.wait_until_assigned()
        assert cluster.controllers == [2]
        assert (first.restorer.terms, len(second.restorer.terms)) == ([], 1)

    simulate(body)


def test_new_topic_is_assigned_at_once():
    async def body(cluster):
        for number in (1, 2, 3):
            await cluster.node(number)
        await cluster.wait_until_assigned()
        for _ in range(10):
            await asyncio.sleep(0.1)
            await cluster.transfer_all()
        await cluster.topic("orders", 9)
        assert await cluster.wait_until_assigned() < 0.05
        assert sorted(cluster.owners("orders").values()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        await cluster.topic_store.grow("orders", 12)
        assert await cluster.wait_until_assigned() < 0.05
        assert sorted(cluster.owners("orders").values()) == [1] * 4 + [2] * 4 + [3] * 4

    simulate(body)


def test_next_controller_reassigns_the_partitions_of_the_lost_one():
    async def body(cluster):
        await cluster.topic("orders", 30)
        for number in (1, 2, 3):
            await cluster.node(number)
            await asyncio.sleep(0.01)
        await cluster.wait_until_balanced()
        lost = cluster.controller
        before = dict(cluster.cache.assignments("orders"))
        await lost.leave()
        assert await cluster.wait_until_assigned() < 0.1
        assert cluster.controller is not lost
        assert cluster.controller.streams.fences == [(lost.broker_id, 1)]
        for number, result in cluster.cache.assignments("orders").items():
            was_lost = before[number].broker_id == lost.broker_id
            assert result.leader_epoch == before[number].leader_epoch + was_lost
            assert result.fully_rolled != was_lost
            assert (result == before[number]) != was_lost

    simulate(body)


def test_broker_that_does_not_renew_is_lost_when_its_lease_expires():
    async def body(cluster):
        await cluster.topic("orders", 4)
        await cluster.node(1)
        await cluster.wait_until_assigned()
        silent = await cluster.node(2)
        await asyncio.sleep(1)
        await cluster.transfer_all()
        await cluster.wait_until_assigned()
        assert 2 in cluster.owners("orders").values()
        silent.broker = None  # Its lease is not renewed any more.
        await asyncio.sleep(TTL_MS / 1000 - 1)
        assert 2 in cluster.owners("orders").values()
        await asyncio.sleep(1.1)
        assert await cluster.wait_until_assigned() < 0.1
        assert set(cluster.owners("orders").values()) == {1}

    simulate(body, moves_max=100)


def test_rejoined_broker_gets_its_partitions_back_in_a_new_epoch():
    async def body(cluster):
        await cluster.topic("orders", 4)
        node = await cluster.node(1)
        await cluster.wait_until_assigned()
        await node.leave()
        await asyncio.sleep(0.5)
        assert cluster.controllers == []
        await node.join()
        await cluster.wait_until_assigned()
        assert cluster.controllers == [1]
        assert node.streams.fences == [(1, 1)]
        for result in cluster.cache.assignments("orders").values():
            assert (result.broker_epoch, result.leader_epoch, result.fully_rolled) == (2, 1, False)

    simulate(body)


def test_new_broker_is_filled_by_a_bounded_number_of_moves():
    async def body(cluster):
        await cluster.topic("orders", 20)
        await cluster.node(1)
        await cluster.wait_until_assigned()
        await cluster.node(2)
        moved = 0
        for _ in range(100):
            await asyncio.sleep(0.1)
            transferred = await cluster.transfer_all()
            assert transferred <= 3
            moved += transferred
        assert moved == 10 + 25
        assert cluster.is_assigned()

    simulate(body, moves_max=3)


def test_election_listeners_are_called():
    async def body(cluster):
        node = await cluster.node(1)
        notified = []
        node.controller.on_elected(lambda: notified.append(node.controller.is_controller))
        await cluster.wait_until_assigned()
        assert notified == [True]
        await node.leave()
        await node.join()
        await cluster.wait_until_assigned()
        assert notified == [True, True]

    simulate(body)


def test_topic_listeners_are_called_after_a_delay_and_retried():
    async def body(cluster):
        notified = []
        failures = [OSError("not now")]

        async def listen(topics):
            notified.append(sorted(topics))
            if failures:
                raise failures.pop()

        node = await cluster.node(1)
        node.controller.on_topics_changed(listen)
        await asyncio.sleep(50)
        await cluster.topic("orders", 1)
        await asyncio.sleep(9)
        assert notified == []
        await asyncio.sleep(2)
        assert notified == [["orders"]]
        await asyncio.sleep(61)
        assert notified == [["orders"]] * 2, "it failed the first time"
        await asyncio.sleep(500)
        assert len(notified) == 2
        await cluster.topic("payments", 1)
        await asyncio.sleep(61)
        assert notified[2:] == [["orders", "payments"]]

    simulate(body)


def test_publish_listeners_are_retried_until_they_succeed():
    async def body(cluster):
        notified = []
        failures = [StoreUnavailableError("not now")]

        async def listen(topics):
            if failures:
                raise failures.pop()
            notified.append(sorted(topics))

        node = await cluster.node(1)
        node.controller.on_publish(listen)
        await cluster.topic("orders", 1)
        await asyncio.sleep(5)
        assert notified[-1] == ["orders"]
        assert failures == []

    simulate(body)


def test_rebalance_returns_the_number_of_moves_under_way():
    async def body(cluster):
        await cluster.topic("orders", 20)
        first = await cluster.node(1)
        await cluster.wait_until_assigned()
        assert await first.controller.rebalance() == 0
        second = await cluster.node(2)
        await asyncio.sleep(0.1)
        assert await first.controller.rebalance() == 4
        with pytest.raises(InvalidRequestError, match="broker 2 is not the controller, 1 is"):
            await second.controller.rebalance()

    simulate(body, moves_max=4)


def test_controller_log_events():
    async def body(cluster):
        await cluster.topic("orders", 6)
        await cluster.node(1)
        await cluster.wait_until_assigned()
        lost = await cluster.node(2)
        await asyncio.sleep(0.1)
        await cluster.transfer_all()
        await asyncio.sleep(0.1)
        await lost.leave()
        await cluster.wait_until_assigned()

    with structlog.testing.capture_logs() as logs:
        simulate(body, moves_max=100)
    notified = [entry for entry in logs if entry["event"] != "partitions reassigning"]
    assert [entry["event"] for entry in notified[:2]] == [
        "controller elected",
        "partitions assigned",
    ]
    assert (notified[1]["partitions"], notified[1]["shards"]) == (6, 50)
    [moving] = [entry for entry in logs if entry["event"] == "partitions reassigning"]
    assert (moving["partitions"], moving["shards"]) == (3, 25)
    [lost] = [entry for entry in logs if entry["event"] == "broker lost"]
    assert (lost["broker_id"], lost["epoch"], lost["partitions"]) == (2, 1, 3)


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
