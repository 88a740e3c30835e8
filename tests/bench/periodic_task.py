"""An action that many clients repeat periodically, and how long it takes each time."""

import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable


class PeriodicTask:
    """One action of many clients, each with a random phase within the period."""

    def __init__(self, period_seconds: float, random: random.Random) -> None:
        self.seconds: list[float] = []
        self._period_seconds = period_seconds
        self._random = random

    async def run(self, act: Callable[[], Awaitable[None]]) -> None:
        """Repeat the action until cancelled."""
        due = time.perf_counter() + self._random.uniform(0, self._period_seconds)
        while True:
            await asyncio.sleep(due - time.perf_counter())
            began = time.perf_counter()
            await act()
            self.seconds.append(time.perf_counter() - began)
            due += self._period_seconds

    def percentile_ms(self, percent: int) -> float:
        return 1000 * statistics.quantiles(self.seconds, n=100)[percent - 1]
