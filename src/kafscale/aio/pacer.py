"""A pacer: long work on the event loop gives other tasks a turn after every few steps."""

import asyncio


class Pacer:
    """Counts steps of work; gives way when there were enough of them."""

    __slots__ = ("_left", "_steps")

    def __init__(self, steps: int) -> None:
        assert steps > 0
        self._steps = steps
        self._left = steps

    async def step(self, count: int = 1) -> None:
        """Count steps that were done since the last call."""
        self._left -= count
        if self._left <= 0:
            self._left = self._steps
            await asyncio.sleep(0)
