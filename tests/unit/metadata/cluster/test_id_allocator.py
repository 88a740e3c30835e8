import asyncio

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.metadata.cluster.id_allocator import (
    advance_to,
    allocate,
    broker_epoch_counter,
    cluster_id,
    peek,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put


def test_allocated_numbers_are_unique(run_with_store):
    async def body(store):
        async def take(step):
            return [(await allocate(store, "producer-id", step), step) for _ in range(5)]

        taken = await asyncio.gather(*(take(step) for step in (1, 1, 10, 1000)))
        for blocks in taken:
            assert blocks == sorted(blocks)
        numbers = [first + i for blocks in taken for first, step in blocks for i in range(step)]
        # Every number was given out, and each to one only.
        assert sorted(numbers) == list(range(5 * (1 + 1 + 10 + 1000)))

    run_with_store(body)


def test_counters_are_independent(run_with_store):
    async def body(store):
        assert [await allocate(store, broker_epoch_counter("0")) for _ in range(3)] == [0, 1, 2]
        assert await allocate(store, broker_epoch_counter("1")) == 0
        assert (await store.get("/kafscale/counters/broker-epoch/0")).value == b"3"

    run_with_store(body)


def test_allocate_returns_numbers_above_a_minimum(run_with_store):
    async def body(store):
        assert await peek(store, "n") is None
        assert await allocate(store, "n", above=6) == 7
        assert await allocate(store, "n", above=6) == 8
        assert await peek(store, "n") == 9

    run_with_store(body)


def test_advanced_counter_never_decreases(run_with_store):
    async def body(store):
        await advance_to(store, "n", 5)
        assert await allocate(store, "n") == 5
        await advance_to(store, "n", 3)
        assert await allocate(store, "n") == 6
        before = await store.get(keys.counter("n"))
        await advance_to(store, "n", 7)
        assert await store.get(keys.counter("n")) == before, "it was there already"

    run_with_store(body)


def test_damaged_counter_raises(run_with_store):
    async def body(store):
        await store.commit([], [Put(keys.counter("n"), b"many")])
        with pytest.raises(DamagedObjectError, match="not a number"):
            await allocate(store, "n")

    run_with_store(body)


def test_concurrent_starts_agree_on_one_cluster_id(run_with_store):
    async def body(store):
        ids = await asyncio.gather(*(cluster_id(store, f"candidate-{i}") for i in range(5)))
        assert len(set(ids)) == 1
        assert await cluster_id(store, "late") == ids[0]
        assert (await store.get("/kafscale/cluster/id")).value.decode() == ids[0]

    run_with_store(body)
