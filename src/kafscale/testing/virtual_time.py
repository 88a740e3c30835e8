"""An event loop in simulated time: hours of waiting in a moment, the same way every time.

    async def scenario(random: Random) -> None:
        async with asyncio.timeout(60):
            await asyncio.sleep(random.expovariate(1 / 30))

    for seed in range(1000):
        virtual_time.run(scenario, seed=seed)

The loop never blocks: where another would wait for its next timer, this one sets its clock to it.
What the scenario does then depends on its seed alone, so that a failing seed fails again. (Sets of
strings are in an order of their own in every process; a scenario had better not depend on it.)

The laws:

1. There is no input and no output: sockets, signals and subprocesses are refused. Work for threads
   is done on the spot, so that it too takes no time and has one order.
2. A scenario that cannot end is stopped. With no timer left nothing can ever happen again; with
   timers that go on for ever, such as heartbeats, `time_max_s` passes. Both raise `StuckError`,
   which says who waits where.
3. An exception that nobody takes, of a forgotten task or of a callback, fails the scenario.

Faults, latencies and the wall clock are left to what the scenario is built from; `clock_ms` is the
one clock for it.
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
"""What `clock_ms` says at the beginning: some day in 2025, since 0 is too easily a mistake."""

TIME_MAX_S: Final = 24 * 3600.0

_CLOCK_RESOLUTION_S: Final = 1e-9
"""Above the rounding error of a sum of times, below any time that is waited for."""


class StuckError(RuntimeError):
    """A scenario that will never end."""


def run(
    scenario: Callable[[Random], Coroutine[Any, Any, Result]],
    *,
    seed: int,
    time_max_s: float = TIME_MAX_S,
) -> Result:
    """What the scenario returns, which is handed all the randomness that it may use."""
    loop = VirtualLoop(time_max_s)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        result = runner.run(scenario(Random(seed)))  # noqa: S311 - it is to be predictable.
    if loop.unhandled:
        raise loop.unhandled[0]
    return result


def clock_ms() -> int:
    """The wall clock of the running scenario: what code that takes a clock is handed."""
    return START_MS + round(asyncio.get_running_loop().time() * 1000)


class VirtualLoop(BaseEventLoop):
    """A loop whose clock stands still while anything is to be done, and jumps when nothing is."""

    def __init__(self, time_max_s: float = TIME_MAX_S) -> None:
        super().__init__()
        self.unhandled: list[BaseException] = []
        self._now_s = 0.0
        self._time_max_s = time_max_s
        self._deadline_s = time_max_s
        # What the base class looks at between two rounds: it asks its selector to wait.
        self._selector = self
        self._clock_resolution = _CLOCK_RESOLUTION_S
        self.set_exception_handler(_note_unhandled)

    def time(self) -> float:
        return self._now_s

    def select(self, timeout: float | None) -> list[Any]:
        """Wait until the next timer: let that time have passed."""
        if timeout is None:
            raise StuckError(f"nothing will ever happen again; {_pending(self)}")
        self._now_s += max(timeout, 0.0)
        if self._now_s > self._deadline_s:
            self._deadline_s = self._now_s + self._time_max_s  # For the tasks to be cancelled in.
            raise StuckError(f"not over after {self._time_max_s:g} s; {_pending(self)}")
        return []

    def run_in_executor(
        self,
        executor: object,  # noqa: ARG002
        func: Callable[[*Arguments], Result],
        *args: *Arguments,
    ) -> asyncio.Future[Result]:
        """Do the work of a thread at once."""
        future: asyncio.Future[Result] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is for whoever waits, whatever it is.
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """Nothing to wake: the loop never sleeps."""


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, VirtualLoop)
    error = context.get("exception") or RuntimeError(context["message"])
    error.add_note(f"Nobody took this exception: {context['message']}.")
    loop.unhandled.append(error)


def _pending(loop: asyncio.AbstractEventLoop) -> str:
    places = sorted(f"{task.get_name()} at {_place(task)}" for task in asyncio.all_tasks(loop))
    return "waiting: " + (", ".join(places) or "nobody")


def _place(task: asyncio.Task[Any]) -> str:
    """Where the task waits: the innermost coroutine that it waits in."""
    coroutine = task.get_coro()
    while isinstance(coroutine, CoroutineType) and isinstance(coroutine.cr_await, CoroutineType):
        coroutine = coroutine.cr_await
    frame = getattr(coroutine, "cr_frame", None)
    line = f":{frame.f_lineno}" if frame else ""
    return f"{getattr(coroutine, '__qualname__', coroutine)}{line}"
