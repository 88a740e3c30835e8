"""Waiting for events: a notifier that wakes all waiters, and a wait with a time limit."""

import asyncio
from collections.abc import Callable
from contextlib import suppress


class Notifier:
    """Wakes all tasks that wait for a change.

    An `asyncio.Event` stays set until one of its waiters clears it, and others may miss that. Here
    every notification has an event of its own, which is set once.
    """

    __slots__ = ("_next_event",)

    def __init__(self) -> None:
        self._next_event = asyncio.Event()

    def notify(self) -> None:
        """Wake the tasks that wait now."""
        self._next_event.set()
        self._next_event = asyncio.Event()

    def next_event(self) -> asyncio.Event:
        """The event of the next notification, also if that comes before the caller waits."""
        return self._next_event

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is evaluated now and after every notification."""
        while not condition():
            await self._next_event.wait()


async def wait_at_most(seconds: float, event: asyncio.Event) -> None:
    """Wait for an event; return without it when the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
