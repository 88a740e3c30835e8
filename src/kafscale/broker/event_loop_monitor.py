"""Measures how late the event loop runs its timers, and logs turns that took too long.

Everything of a broker shares one event loop. A turn that takes long delays all responses; one that
takes as long as the lease lasts makes other brokers take over.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.histogram import Histogram

logger = get_logger(__name__)

INTERVAL_SECONDS: Final = 0.1
BLOCKED_SECONDS: Final = 0.5
"""A longer delay is logged."""


class EventLoopMonitor:
    """Observes the delay of a timer that is always set."""

    def __init__(
        self, lag_seconds: Histogram, cpu_clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._lag_seconds = lag_seconds
        self._cpu_clock = cpu_clock

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + INTERVAL_SECONDS
            cpu_before = self._cpu_clock()
            await asyncio.sleep(INTERVAL_SECONDS)
            lag_seconds = loop.time() - due
            self._lag_seconds.observe(lag_seconds)
            if lag_seconds >= BLOCKED_SECONDS:
                # With little CPU time the machine was busy, or stopped, and not this process.
                logger.warning(
                    "event loop blocked",
                    seconds=round(lag_seconds, 3),
                    cpu_seconds=round(self._cpu_clock() - cpu_before, 3),
                )
