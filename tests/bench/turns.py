"""Measures how long single turns hold the event loop.

In processor time of the loop's thread, because other processes also use the machine.
"""

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class Turns:
    longest_ms: float = 0.0


@asynccontextmanager
async def measured_turns() -> AsyncIterator[Turns]:
    """Measure the turns that the event loop takes in the block."""
    turns = Turns()
    gc.freeze()  # As a broker does when it has started: what the tests import is not its own.

    async def measure() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            turns.longest_ms = max(turns.longest_ms, (now - before) * 1000)
            before = now

    measuring = asyncio.create_task(measure())
    await asyncio.sleep(0)
    try:
        yield turns
        await asyncio.sleep(0.002)
    finally:
        measuring.cancel()
