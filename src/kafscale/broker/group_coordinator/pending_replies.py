"""Tickets: who waits for an answer from a group.

The law: an answer reaches whoever waits with its ticket, once; one that nobody waits for any more,
because the client has gone, is dropped.
"""

import asyncio
from itertools import count
from typing import Any

from kafscale.errors import KafscaleError
from kafscale.groups.responses import Answer


class Tickets:
    """The tickets that are out."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    def issue(self) -> tuple[int, asyncio.Future[Any]]:
        """A new ticket, and the answer to come."""
        ticket = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        return ticket, future

    def answer(self, ticket: int, answer: Answer | KafscaleError) -> None:
        future = self._waiting.pop(ticket, None)
        if future is None or future.done():
            return
        if isinstance(answer, KafscaleError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
