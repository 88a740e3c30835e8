"""An event loop in virtual time: waits take no real time, and runs are repeatable.

    async def scenario(random: Random) -> None:
        async with asyncio.timeout(60):
            await asyncio.sleep(random.expovariate(1 / 30))

    for seed in range(1000):
        virtual_time.run(scenario, seed=seed)

The loop never blocks: instead of waiting for the next timer, it advances its clock to it. A
scenario depends only on its seed, so a failing seed fails again. (The order of sets of strings
differs between processes; scenarios must not depend on it.)

Invariants:

1. There is no I/O: sockets, signals and subprocesses are rejected. Work for threads is executed
   immediately, so it takes no time and has a fixed order.
2. A scenario that cannot end is stopped. Without a timer nothing can happen any more; with endless
   timers, such as heartbeats, `time_max_s` passes. Both raise `StuckError`, which lists the waiting
   tasks.
3. An unhandled exception of a task or a callback fails the scenario.

`clock_ms` is the wall clock of a scenario.
"""

import asyncio
from asyncio import BaseEventLoop
from collections.abc import Callable, Coroutine
from random import Random
from types import CoroutineType
from typing import Any, Final, TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

START_MS: Final = 1_750_000_000_000
"""The initial value of `clock_ms`: a day in 2025, because 0 could hide mistakes."""

TIME_MAX_S: Final = 24 * 3600.0

_CLOCK_RESOLUTION_S: Final = 1e-9
"""Larger than rounding errors of sums of times, smaller than any timer."""


class StuckError(RuntimeError):
    """The scenario cannot end."""


def run(
    scenario: Callable[[Random], Coroutine[Any, Any, Result]],
    *,
    seed: int,
    time_max_s: float = TIME_MAX_S,
) -> Result:
    """Run a scenario with a random generator, and return its result."""
    loop = VirtualLoop(time_max_s)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        result = runner.run(scenario(Random(seed)))
    if loop.unhandled:
        raise loop.unhandled[0]
    return result


def clock_ms() -> int:
    """The wall clock of the running scenario, for code that takes a clock."""
    return START_MS + round(asyncio.get_running_loop().time() * 1000)


class VirtualLoop(BaseEventLoop):
    """A loop whose clock stands still while callbacks are ready, and jumps to the next timer."""

    def __init__(self, time_max_s: float = TIME_MAX_S) -> None:
        super().__init__()
        self.unhandled: list[BaseException] = []
        self._now_s = 0.0
        self._time_max_s = time_max_s
        self._deadline_s = time_max_s
        # The base class uses these between iterations: it calls `select` of its selector.
        self._selector = self
        self._clock_resolution = _CLOCK_RESOLUTION_S
        self.set_exception_handler(_record_unhandled)

    def time(self) -> float:
        return self._now_s

    def block(self, seconds: float) -> None:
        """Let time pass within a callback, as if it took long."""
        self._now_s += seconds

    def select(self, timeout: float | None) -> list[Any]:
        """Advance the clock to the next timer."""
        if timeout is None:
            raise StuckError(f"deadlock: no timer is left; {_pending(self)}")
        self._now_s += max(timeout, 0.0)
        if self._now_s > self._deadline_s:
            self._deadline_s = self._now_s + self._time_max_s  # Time for the tasks to be cancelled.
            raise StuckError(f"not finished after {self._time_max_s:g} s; {_pending(self)}")
        return []

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002
        func: Callable[[*Arguments], Result],
        *args: *Arguments,
    ) -> asyncio.Future[Result]:
        """Run the function immediately instead of in a thread."""
        future: asyncio.Future[Result] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - passed to the awaiting task.
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nothing to wake: the loop never blocks."""


def _record_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, VirtualLoop)
    error = context.get("exception") or RuntimeError(context["message"])
    error.add_note(f"Unhandled exception: {context['message']}.")
    loop.unhandled.append(error)


def _pending(loop: asyncio.AbstractEventLoop) -> str:
    waits = sorted(f"{task.get_name()} at {_waits_at(task)}" for task in asyncio.all_tasks(loop))
    return "waiting: " + (", ".join(waits) or "no task")


def _waits_at(task: asyncio.Task[Any]) -> str:
    """The innermost coroutine in which the task waits."""
    coroutine = task.get_coro()
    while isinstance(coroutine, CoroutineType) and isinstance(coroutine.cr_await, CoroutineType):
        coroutine = coroutine.cr_await
    frame = getattr(coroutine, "cr_frame", None)
    line = f":{frame.f_lineno}" if frame else ""
    return f"{getattr(coroutine, '__qualname__', coroutine)}{line}"
