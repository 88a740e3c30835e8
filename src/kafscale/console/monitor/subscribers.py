"""Subscribers of overview updates.

A slow subscriber gets the newest overview when it reads again, and none in between. The number of
subscribers is bounded.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

from kafscale.console.schema.cluster import Overview
from kafscale.errors import OverloadedError

SUBSCRIBERS_MAX: Final = 100


class Subscribers:
    def __init__(self, limit: int = SUBSCRIBERS_MAX) -> None:
        self._limit = limit
        self._mailboxes: set[_Mailbox] = set()

    def __len__(self) -> int:
        return len(self._mailboxes)

    @contextmanager
    def subscribe(self, first: Overview | None) -> Iterator[AsyncIterator[Overview]]:
        """Yield an iterator of updates for the block; `first` is delivered at once."""
        if len(self._mailboxes) >= self._limit:
            raise OverloadedError(
                f"{self._limit} event streams are open already, which is the limit; close some"
            )
        mailbox = _Mailbox(first)
        self._mailboxes.add(mailbox)
        try:
            yield mailbox.updates()
        finally:
            self._mailboxes.discard(mailbox)

    def publish(self, newest: Overview) -> None:
        for mailbox in self._mailboxes:
            mailbox.put(newest)


class _Mailbox:
    """Holds the newest overview."""

    def __init__(self, first: Overview | None) -> None:
        self._newest = first
        self._arrived = asyncio.Event()
        if first is not None:
            self._arrived.set()

    def put(self, newest: Overview) -> None:
        self._newest = newest
        self._arrived.set()

    async def updates(self) -> AsyncIterator[Overview]:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            assert self._newest is not None
            yield self._newest
