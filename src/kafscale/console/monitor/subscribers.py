"""Who wants to be told of every look: each has the newest, and nobody is waited for.

The law: a subscriber that is slow is told of the newest look when it asks again, and of none in
between; how many there may be has a bound.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

from kafscale.console.schema.cluster import Overview
from kafscale.errors import OverloadedError

SUBSCRIBERS_MAX: Final = 100


class Subscribers:
    def __init__(self, most: int = SUBSCRIBERS_MAX) -> None:
        self._most = most
        self._mailboxes: set[_Mailbox] = set()

    def __len__(self) -> int:
        return len(self._mailboxes)

    @contextmanager
    def subscribe(self, first: Overview | None) -> Iterator[AsyncIterator[Overview]]:
        """Be told of what comes, inside the block; of what there is already, at once."""
        if len(self._mailboxes) >= self._most:
            raise OverloadedError(f"{self._most} watch already, which is the most; close some")
        mailbox = _Mailbox(first)
        self._mailboxes.add(mailbox)
        try:
            yield mailbox.news()
        finally:
            self._mailboxes.discard(mailbox)

    def tell(self, newest: Overview) -> None:
        for mailbox in self._mailboxes:
            mailbox.put(newest)


class _Mailbox:
    """Room for one: the newest."""

    def __init__(self, first: Overview | None) -> None:
        self._newest = first
        self._arrived = asyncio.Event()
        if first is not None:
            self._arrived.set()

    def put(self, newest: Overview) -> None:
        self._newest = newest
        self._arrived.set()

    async def news(self) -> AsyncIterator[Overview]:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            assert self._newest is not None
            yield self._newest
