"""Concurrent calls with a limit."""

import asyncio

import pytest

from kafscale.aio.gather import map_limited


def test_calls_are_limited_and_results_in_order():
    running, most = 0, 0

    async def double(number):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return 2 * number

    assert asyncio.run(map_limited(double, range(10), 3)) == [*range(0, 20, 2)]
    assert most == 3


def test_first_failure_cancels_the_other_calls():
    ended = []

    async def call(number):
        try:
            await asyncio.sleep(0 if number == 1 else 60)
            raise ValueError(number)
        finally:
            ended.append(number)

    with pytest.raises(ValueError, match="1"):
        asyncio.run(map_limited(call, range(5), 2))
    assert {0, 1} <= {*ended} <= {0, 1, 2}, "waiting calls do not start"
