"""Requests that wait for the metadata store, for a limited time."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.broker.shards.pending_replies import PendingReplies, in_time
from kafscale.errors import CoordinatorUnavailableError


def test_requests_that_are_given_up_leave_nothing_behind():
    """The store may be down for hours, while clients try again and again."""

    async def scenario(_random):
        replies = PendingReplies()
        requests = [replies.create() for _ in range(3)]
        disconnected = asyncio.create_task(in_time(requests[0][1]))
        await asyncio.sleep(1)
        disconnected.cancel()
        replies.resolve(requests[1][0], "response")
        assert await in_time(requests[1][1]) == "response"
        with pytest.raises(CoordinatorUnavailableError):
            await in_time(requests[2][1])
        await asyncio.sleep(0)
        assert len(replies) == 0
        replies.resolve(requests[2][0], "late")

    virtual_time.run(scenario, seed=0)
