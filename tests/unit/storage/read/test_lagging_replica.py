"""Reads through a replica of the bucket, which lags behind the bucket."""

import asyncio

from kafscale.storage.objects.layers.replica import ReplicaReadingObjectStore
from unit.storage.engines import keys, memory_store, simulate
from unit.storage.staged_segments import (
    COUNT,
    PREFIX,
    engine_with_segments,
    stage,
    values,
    values_of,
)


def test_replica_that_lags_serves_nothing_outdated():
    """The segments are merged; the replica has those of before, and catches up later."""

    async def scenario():
        main, replica = memory_store(), memory_store()
        store = ReplicaReadingObjectStore(
            main, replica, lambda key: key.endswith(".kfs"), asyncio.get_running_loop().time
        )

        async def replicate() -> None:
            for key in await keys(main):
                await replica.put(key, [await main.get(key)], create=False)

        engine, log = await engine_with_segments(store)
        await replicate()
        assert await values_of(engine) == values(range(0))
        await stage(main, range(COUNT))
        await engine.swap_segments(log, PREFIX)
        assert await values_of(engine) == values(range(COUNT))
        await replicate()
        engine.reader.forget("test/")
        assert await values_of(engine) == values(range(COUNT))
        assert engine.counters.damaged_reads == 0

    simulate(scenario)


def test_damaged_block_of_the_replica_is_read_from_the_bucket():
    async def scenario():
        main, replica = memory_store(), memory_store()
        store = ReplicaReadingObjectStore(
            main, replica, lambda key: key.endswith(".kfs"), asyncio.get_running_loop().time
        )
        engine, _ = await engine_with_segments(store)
        for key in await keys(main, ".kfs"):
            data = bytearray(await main.get(key))
            data[100] ^= 1
            await replica.put(key, [data])
        assert await values_of(engine) == values(range(0))
        assert engine.counters.damaged_reads == 0

    simulate(scenario)
