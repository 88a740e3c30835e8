"""Tests of subscribers of the monitor."""

import asyncio

import pytest

from kafscale.console.monitor.poller import Subscribers
from kafscale.errors import OverloadedError


def test_slow_subscriber_gets_only_the_newest():
    async def run():
        subscribers = Subscribers()
        with subscribers.subscribe(None) as updates:
            for number in range(5):
                subscribers.publish(number)
            assert await anext(updates) == 4
            subscribers.publish(5)
            assert await anext(updates) == 5
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(updates), 0.05)
        assert len(subscribers) == 0

    asyncio.run(run())


def test_first_value_is_delivered_at_once():
    async def run():
        with Subscribers().subscribe(7) as updates:
            assert await anext(updates) == 7

    asyncio.run(run())


def test_subscribers_are_limited():
    async def run():
        subscribers = Subscribers(limit=1)
        with subscribers.subscribe(None), pytest.raises(OverloadedError, match="the limit"):
            subscribers.subscribe(None).__enter__()
        with subscribers.subscribe(None):
            assert len(subscribers) == 1

    asyncio.run(run())
