"""Comparing a stored object with its parts."""

import asyncio
import time

import pytest

from kafscale.storage.objects.comparison import is_equal

LARGE = bytes(range(256)) * 4096
"""1 MiB: several pieces."""


@pytest.mark.parametrize("content", [b"", b"some bytes", LARGE], ids=["empty", "small", "large"])
@pytest.mark.parametrize("part_bytes", [1000, 10**7])
def test_equal_and_different_objects(content, part_bytes):
    parts = [
        memoryview(bytearray(content[start : start + part_bytes]))
        for start in range(0, len(content), part_bytes)
    ]

    async def scenario():
        assert await is_equal(memoryview(content), parts)
        assert not await is_equal(memoryview(content + b"x"), parts)
        assert not await is_equal(memoryview(content), [*parts, b"x"])
        for position in {0, len(content) // 2, len(content) - 1} if content else set():
            changed = bytearray(content)
            changed[position] ^= 1
            assert not await is_equal(memoryview(changed), parts)

    asyncio.run(scenario())


def test_large_object_is_compared_outside_of_the_event_loop():
    content = memoryview(LARGE * 64)

    async def scenario():
        before = time.thread_time()
        assert await is_equal(content, [content])
        return time.thread_time() - before

    assert asyncio.run(scenario()) < 0.01
