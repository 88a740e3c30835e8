"""Futures of the requests that wait for a state machine or for the metadata store."""

import asyncio
from collections.abc import Awaitable
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

from kafscale.errors import CoordinatorUnavailableError, KafscaleError

WRITE_SECONDS_MAX: Final = 5.0
"""How long a request waits for the store, as in Kafka; those that wait hold batches in memory."""

T = TypeVar("T")


class PendingReplies:
    """Futures of the requests that wait for a group or a transaction, by reply token.

    A response is delivered once; it is dropped if the client has disconnected, or waits no longer.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._futures: dict[int, asyncio.Future[Any]] = {}

    def create(self) -> tuple[int, asyncio.Future[Any]]:
        """A new reply token, and the future of its response."""
        reply_token = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[reply_token] = future
        # One that is given up must not stay until the store responds.
        future.add_done_callback(partial(self._forget, reply_token))
        return reply_token, future

    def resolve(self, reply_token: int, response: object) -> None:
        future = self._futures.pop(reply_token, None)
        if future is None or future.done():
            return
        if isinstance(response, KafscaleError):
            future.set_exception(response)
        else:
            future.set_result(response)

    def is_waiting(self, reply_token: int) -> bool:
        """Whether a request still waits for its response."""
        return reply_token in self._futures

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._futures)

    def _forget(self, reply_token: int, _future: "asyncio.Future[Any]") -> None:
        self._futures.pop(reply_token, None)


async def in_time(response: Awaitable[T], seconds: float = WRITE_SECONDS_MAX) -> T:
    """A response, unless the store is slow: its changes are written, but the client has to ask."""
    try:
        async with asyncio.timeout(seconds):
            return await response
    except TimeoutError:
        raise CoordinatorUnavailableError("the metadata store is slow; try again") from None
