"""Measures the turns of an event loop: how long one callback, or one step of a task, takes.

Only the processor time of the loop's thread counts, so the load of the machine does not matter.
Garbage collection is off meanwhile: the broker runs it rarely, and tests have more objects.
"""

import asyncio
import gc
import time
from asyncio import events
from collections.abc import Iterator
from contextlib import contextmanager


class TurnTimer:
    """The longest turn so far."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        self.longest = ""

    def reset(self) -> None:
        self.longest_seconds = 0.0
        self.longest = ""


@contextmanager
def measured_turns() -> Iterator[TurnTimer]:
    """Measure the turns of all loops of asyncio (not of uvloop) during the block."""
    timer = TurnTimer()
    run = events.Handle._run

    def timed_run(handle: events.Handle) -> None:
        before = time.thread_time()
        run(handle)
        seconds = time.thread_time() - before
        if seconds > timer.longest_seconds:
            timer.longest_seconds = seconds
            timer.longest = _describe(handle)

    gc.collect()
    gc.disable()
    events.Handle._run = timed_run  # type: ignore[method-assign]
    try:
        yield timer
    finally:
        events.Handle._run = run  # type: ignore[method-assign]
        gc.enable()


def _describe(handle: events.Handle) -> str:
    """The callback, or the coroutine of the task."""
    task = getattr(handle._callback, "__self__", None)
    return repr(task.get_coro()) if isinstance(task, asyncio.Task) else repr(handle)
