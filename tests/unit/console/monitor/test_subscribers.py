"""Who is told of every look: the newest, and nobody waits."""

import asyncio

import pytest

from kafscale.console.monitor.subscribers import Subscribers
from kafscale.errors import OverloadedError


def test_who_is_slow_misses_looks_and_is_never_behind():
    async def run():
        subscribers = Subscribers()
        with subscribers.subscribe(None) as news:
            for number in range(5):
                subscribers.tell(number)
            assert await anext(news) == 4
            subscribers.tell(5)
            assert await anext(news) == 5
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(news), 0.05)
        assert len(subscribers) == 0

    asyncio.run(run())


def test_what_there_is_already_is_told_at_once():
    async def run():
        with Subscribers().subscribe(7) as news:
            assert await anext(news) == 7

    asyncio.run(run())


def test_there_is_a_bound_and_room_again_when_somebody_leaves():
    async def run():
        subscribers = Subscribers(most=1)
        with subscribers.subscribe(None), pytest.raises(OverloadedError, match="the most"):
            subscribers.subscribe(None).__enter__()
        with subscribers.subscribe(None):
            assert len(subscribers) == 1

    asyncio.run(run())
