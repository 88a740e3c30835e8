"""Futures of the requests that wait for a state machine, by reply token."""

import asyncio
from itertools import count
from typing import Any

from kafscale.errors import KafscaleError


class PendingReplies:
    """Futures of the requests that wait for a group or a transaction, by reply token.

    A response is delivered once; it is dropped if the client has disconnected.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._futures: dict[int, asyncio.Future[Any]] = {}

    def create(self) -> tuple[int, asyncio.Future[Any]]:
        """A new reply token, and the future of its response."""
        reply_token = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[reply_token] = future
        return reply_token, future

    def resolve(self, reply_token: int, response: object) -> None:
        future = self._futures.pop(reply_token, None)
        if future is None or future.done():
            return
        if isinstance(response, KafscaleError):
            future.set_exception(response)
        else:
            future.set_result(response)
