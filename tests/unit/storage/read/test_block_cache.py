"""The block cache."""

import asyncio

import pytest

from kafscale.errors import DamagedObjectError
from kafscale.storage.read.block import BLOCK_BYTES
from kafscale.storage.read.block_cache import BlockCache
from unit.storage.engines import CountingStore, simulate

KEY = "test/object"


async def blocks_of(size_bytes: int, bytes_max: int = 10 * BLOCK_BYTES):
    store = CountingStore()
    data = bytes(range(251)) * (size_bytes // 251 + 1)
    await store.put(KEY, [data[:size_bytes]])
    return store, data[:size_bytes], BlockCache(store, bytes_max)


def test_range_over_two_blocks_is_two_slices_or_one_copy():
    async def scenario():
        _, data, blocks = await blocks_of(BLOCK_BYTES + 1000)
        start, stop = BLOCK_BYTES - 10, BLOCK_BYTES + 10
        slices = await blocks.slices(KEY, start, stop)
        assert [len(piece) for piece in slices] == [10, 10]
        assert b"".join(slices) == data[start:stop]
        assert await blocks.contiguous(KEY, start, stop) == data[start:stop]

    simulate(scenario)


def test_fifty_readers_fetch_a_block_once_within_the_limit():
    """N-10d."""

    async def scenario():
        store, data, blocks = await blocks_of(3 * BLOCK_BYTES, bytes_max=2 * BLOCK_BYTES)
        result = await asyncio.gather(*(blocks.slices(KEY, 0, 3 * BLOCK_BYTES) for _ in range(50)))
        assert all(b"".join(slices) == data for slices in result[::10])
        assert store.requests["get_range"] == 3
        assert blocks.size_bytes <= 2 * BLOCK_BYTES

    simulate(scenario)


def test_reserved_memory_is_not_used():
    async def scenario():
        _, _, blocks = await blocks_of(3 * BLOCK_BYTES, bytes_max=3 * BLOCK_BYTES)
        await blocks.slices(KEY, 0, 3 * BLOCK_BYTES)
        blocks.reserve(2 * BLOCK_BYTES)
        assert blocks.size_bytes == BLOCK_BYTES
        blocks.reserve(0)
        await blocks.slices(KEY, 0, 3 * BLOCK_BYTES)
        assert blocks.size_bytes == 3 * BLOCK_BYTES

    simulate(scenario)


def test_prefetch_fetches_a_block_before_it_is_read():
    async def scenario():
        store, data, blocks = await blocks_of(100)
        blocks.prefetch(KEY, 0)
        blocks.prefetch(KEY, 0)
        await asyncio.sleep(1)
        assert store.requests["get_range"] == 1
        assert await blocks.contiguous(KEY, 10, 20) == data[10:20]
        assert store.requests["get_range"] == 1

    simulate(scenario)


def test_object_that_is_too_short_is_damaged():
    async def scenario():
        _, _, blocks = await blocks_of(100)
        with pytest.raises(DamagedObjectError):
            await blocks.slices(KEY, 90, 110)

    simulate(scenario)


def test_forgotten_blocks_are_fetched_again():
    async def scenario():
        store, _, blocks = await blocks_of(100)
        await blocks.slices(KEY, 0, 10)
        blocks.forget("test/")
        assert blocks.size_bytes == 0
        await blocks.slices(KEY, 0, 10)
        assert store.requests["get_range"] == 2

    simulate(scenario)
