"""Commits that fail and are applied later: never after a later commit of the same coordinator."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.shards.write_sequence import WriteSequence
from kafscale.errors import NotCoordinatorError, StoreUnavailableError
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.store.base import Delete, Put
from unit.broker.group_coordinator.nodes import GROUP, OTHER, TOPIC, ControllableStore, simulate
from unit.broker.group_coordinator.shard_guards import assigned

LATE_SECONDS = 600


async def next_owner(cluster):
    """The offsets that the next coordinator finds."""
    await asyncio.sleep(LATE_SECONDS + 1)
    successor = await cluster.node()
    await successor.open_shards_of(GROUP)
    return successor.committed()


@pytest.mark.parametrize("later", ["same group", "other shard"])
def test_offset_does_not_go_back(later):
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP, OTHER)
        cluster.store.late_seconds = LATE_SECONDS
        await node.commit(10)
        await node.commit(20, GROUP if later == "same group" else OTHER)
        await node.commit(30)
        assert await next_owner(cluster) == {0: 30}

    simulate(body)


def test_deletion_does_not_delete_what_was_committed_after_it():
    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        await node.commit(10)
        cluster.store.late_seconds = LATE_SECONDS
        await node.groups.delete_offsets(GROUP, [(TOPIC, 0)])
        await node.commit(20)
        assert await next_owner(cluster) == {0: 20}

    simulate(body)


def test_commit_of_an_ended_session_does_not_change_what_the_next_one_has_loaded():
    """The broker releases a shard, remains its owner, and serves it again."""

    async def body(cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        await node.commit(10)
        guard = node.groups._sessions.get(shard_of(GROUP)).guard
        before = await assigned(cluster.store, shard_of(GROUP))
        cluster.store.late_seconds = LATE_SECONDS
        deleting = asyncio.ensure_future(node.groups.delete_offsets(GROUP, [(TOPIC, 0)]))
        await asyncio.sleep(0.006)
        assert cluster.store.late_seconds is None, "the deletion was sent"
        node.shards.drop_all()
        with pytest.raises(NotCoordinatorError):
            await deleting
        await node.shards.open({shard_of(GROUP): guard})
        assert node.committed() == {0: 10}
        assert await assigned(cluster.store, shard_of(GROUP)) == before
        assert await next_owner(cluster) == {0: 10}

    simulate(body)


def test_late_commit_before_the_next_one_is_noticed():
    """It was applied after all: the next commit is refused once, and then follows it."""

    async def scenario(_random):
        store = ControllableStore()
        sequence = WriteSequence(store, 1)
        await sequence.settle()
        store.late_seconds = 1
        with pytest.raises(StoreUnavailableError):
            await sequence.commit((), [Put("/a", b"1")])
        await asyncio.sleep(2)
        assert not (await sequence.commit((), [Delete("/a")])).succeeded
        assert (await sequence.commit((), [Delete("/a")])).succeeded
        assert await store.get("/a") is None

    virtual_time.run(scenario, seed=0)


def test_coordinators_with_the_same_broker_id_do_not_stop_each_other():
    async def scenario(_random):
        store = MemoryStore(virtual_time.clock_ms)
        one, other = WriteSequence(store, 1), WriteSequence(store, 1)
        for sequence in (one, other, one, other):
            await sequence.settle()

    virtual_time.run(scenario, seed=0)
