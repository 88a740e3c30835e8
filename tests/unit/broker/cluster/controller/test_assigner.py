"""Plans are written while caches are late and the store fails."""

import asyncio

import pytest

from kafscale.broker.cluster.controller.assigner import VISIBLE_SECONDS_MAX
from kafscale.broker.cluster.controller.controller import RETRY_SECONDS
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, Assignment
from kafscale.metadata.store.base import Put
from unit.broker.cluster.controller_cluster import simulate


def test_assigner_does_not_plan_while_the_cache_is_disconnected():
    """Only the watch of brokers breaks: the new topic is visible, and has to wait."""

    async def body(cluster):
        node = await cluster.node(1)
        await cluster.wait_until_assigned()
        node.store.interrupted = True
        await cluster.store.commit([], [Put(keys.broker(7), b"\xff damaged")])
        await asyncio.sleep(0.01)
        node.store.interrupted = False
        await cluster.topic("orders", 3)
        await asyncio.sleep(0.4)
        assert "orders" in node.topic_store.topics
        assert not node.cache.connected
        assert cluster.owners("orders") == {}
        assert await cluster.wait_until_assigned() < 3 * RETRY_SECONDS

    simulate(body)


def test_assigner_waits_until_the_cache_shows_its_last_writes():
    async def body(cluster):
        node = await cluster.node(1)
        await cluster.wait_until_assigned()
        node.store.late = {keys.ASSIGNMENTS}
        node.store.commits.clear()
        for name in ("orders", "payments", "returns"):
            await cluster.topic(name, 3)
            await asyncio.sleep(0.1)
        assert len(cluster.owners("orders")) == 3
        assert cluster.owners("payments") == {}
        node.store.late.clear()
        assert await cluster.wait_until_assigned() < 0.1
        assert all(done.succeeded for *_, done in node.store.commits)

    simulate(body)


def test_assigner_plans_after_a_timeout_if_the_cache_shows_nothing():
    async def body(cluster):
        node = await cluster.node(1)
        await cluster.wait_until_assigned()
        node.store.late = {keys.ASSIGNMENTS}
        await cluster.topic("orders", 3)
        await asyncio.sleep(0.1)
        await cluster.topic("payments", 3)
        await asyncio.sleep(VISIBLE_SECONDS_MAX + 2)
        assert len(cluster.owners("payments")) == 3
        assert {result.leader_epoch for result in cluster.cache.assignments("orders").values()} == {
            0
        }

    simulate(body)


@pytest.mark.parametrize("fault", ["refusing", "losing_responses"])
def test_assigner_retries_when_the_metadata_store_fails(fault):
    async def body(cluster):
        await cluster.topic("orders", 200)
        node = await cluster.node(1)
        setattr(node.store, fault, 6)
        await cluster.wait_until_assigned(30)
        assert getattr(node.store, fault) == 0
        for result in cluster.cache.assignments("orders").values():
            assert result.leader_epoch == 0, "nothing was done twice"

    simulate(body)


def test_one_damaged_assignment_does_not_block_the_others():
    """A damaged assignment blocks only its own partition."""

    async def body(cluster):
        await cluster.store.commit([], [Put(keys.assignment(SHARDS_TOPIC, 7), b"\xff damaged")])
        await cluster.topic("orders", 100)
        await cluster.node(1)
        await asyncio.sleep(5)
        assert len(cluster.owners("orders")) == 100
        assert cluster.owners(SHARDS_TOPIC).keys() == set(range(SHARD_COUNT)) - {7}

    simulate(body)


def test_assignments_of_missing_topics_are_removed():
    async def body(cluster):
        await cluster.node(1)
        await cluster.wait_until_assigned()
        stray = Assignment(
            topic="stray",
            partition=0,
            broker_id=1,
            broker_epoch=1,
            leader_epoch=0,
            fully_rolled=True,
        )
        await cluster.store.commit([], [Put(keys.assignment("stray", 0), encode_assignment(stray))])
        await asyncio.sleep(0.1)
        assert cluster.cache.assigned_topics() == [SHARDS_TOPIC]

    simulate(body)


def test_assignments_of_topics_newer_than_the_cache_are_kept():
    """The watch of topics is behind the watch of assignments."""

    async def body(cluster):
        first = await cluster.node(1)
        await cluster.wait_until_assigned()
        first.store.late = {keys.TOPICS}
        await cluster.topic("orders", 1)
        owned = Assignment(
            topic="orders",
            partition=0,
            broker_id=1,
            broker_epoch=1,
            leader_epoch=0,
            fully_rolled=True,
        )
        await cluster.store.commit(
            [], [Put(keys.assignment("orders", 0), encode_assignment(owned))]
        )
        await asyncio.sleep(3)
        assert first.topic_store.topics == {}
        assert cluster.owners("orders") == {0: 1}

    simulate(body)


def test_assigner_follows_topics_that_are_created_and_deleted():
    async def body(cluster):
        await cluster.node(1)
        await cluster.node(2)
        for round_ in range(20):
            topic = await cluster.topic(f"topic-{round_}", 50)
            await asyncio.sleep(0.003 * (round_ % 4))
            if round_ % 2:
                await cluster.topic_store.delete(topic.name)
        await cluster.wait_until_balanced()
        assert set(cluster.cache.assigned_topics()) == {*cluster.topic_store.topics, SHARDS_TOPIC}

    simulate(body, moves_max=100)


def test_takeover_of_many_partitions_is_fast():
    async def body(cluster):
        for number in range(20):
            await cluster.topic(f"topic-{number}", 50)
        for number in (1, 2):
            await cluster.node(number)
        cluster.nodes[2].streams.seconds = cluster.nodes[1].streams.seconds = 0.3
        await cluster.wait_until_balanced()
        lost = next(node for node in cluster.nodes.values() if node is not cluster.controller)
        before = len(cluster.controller.store.commits)
        await lost.leave()
        assert await cluster.wait_until_assigned() < 0.5
        assert len(cluster.controller.store.commits) - before < 20

    simulate(body, moves_max=1000)
