"""Pending replies: requests that wait for the response of a group.

Invariant: a response is delivered once, to the request with its reply token; it is dropped if the
client has disconnected.
"""

import asyncio
from itertools import count
from typing import Any

from kafscale.errors import KafscaleError
from kafscale.groups.effects import Response


class PendingReplies:
    """Futures of pending requests by reply token."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._pending_callbacks: dict[int, asyncio.Future[Any]] = {}

    def create(self) -> tuple[int, asyncio.Future[Any]]:
        """A new reply token, and the future of its response."""
        reply_token = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending_callbacks[reply_token] = future
        return reply_token, future

    def resolve(self, reply_token: int, response: Response | KafscaleError) -> None:
        future = self._pending_callbacks.pop(reply_token, None)
        if future is None or future.done():
            return
        if isinstance(response, KafscaleError):
            future.set_exception(response)
        else:
            future.set_result(response)
