"""Processes in one event loop in virtual time: each can be paused, as by SIGSTOP, and continued.

    processes = Processes()                      # in a scenario of `virtual_time`
    first = processes.start("first")
    first.create_task(serve())                   # and every task that it creates
    first.pause()                                # its tasks, timers and callbacks stop here
    first.resume()                               # and continue, with everything that is due by now
    await first.kill()                           # all of its tasks are cancelled

A process is a context variable, which tasks, timers and callbacks inherit. Code outside all
processes, such as the stores, is never paused. The clock does not stop for a paused process.
"""

import asyncio
from asyncio import BaseEventLoop, Handle
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_current: "ContextVar[Process | None]" = ContextVar("process", default=None)


class Process:
    """The tasks of one process."""

    def __init__(self, name: str, ready: deque[Handle], context: Context) -> None:
        self.name = name
        self.is_paused = False
        self.is_killed = False
        self.parked: list[Handle] = []
        """What would have been executed since the process was paused."""
        self.tasks: dict[asyncio.Task[Any], None] = {}
        """Those that are not done, in the order of their start."""
        self._ready = ready
        self._context = context.copy()
        self._context.run(_current.set, self)

    def __repr__(self) -> str:
        return f"<Process {self.name}{' paused' if self.is_paused else ''}>"

    def create_task(self, coroutine: Coroutine[Any, Any, Result]) -> "asyncio.Task[Result]":
        """Start a task of this process."""
        return asyncio.create_task(coroutine, context=self._context.copy())

    def call(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call a function in this process: what it starts is paused with it."""
        return self._context.copy().run(function, *args, **kwargs)

    def pause(self) -> None:
        """Execute nothing more of this process, except what is ready in this very moment."""
        self.is_paused = not self.is_killed

    def resume(self) -> None:
        """Continue, in the order in which everything became ready."""
        self.is_paused = False
        self._ready.extend(self.parked)
        self.parked.clear()

    async def kill(self) -> None:
        """Cancel all tasks, and those that they start meanwhile; their failures do not matter."""
        self.is_killed = True
        self.resume()
        while self.tasks:
            tasks = list(self.tasks)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


class Processes:
    """The processes of a running loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BaseEventLoop)
        self.outside = copy_context()
        """The context of tasks that belong to no process."""
        self._ready = loop._ready = _ReadyQueue(loop._ready)  # type: ignore[attr-defined]

        loop.set_task_factory(_create_task)

    def start(self, name: str) -> Process:
        return Process(name, self._ready, self.outside)


class _ReadyQueue(deque[Handle]):
    """The loop's queue of what to execute next, without that of paused processes."""

    def append(self, handle: Handle) -> None:
        process = handle._context.get(_current)  # type: ignore[attr-defined]
        if process is not None and process.is_paused:
            process.parked.append(handle)
        else:
            super().append(handle)


class _NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set, for example of a TaskGroup, is the same in every run."""

    def __init__(self, *args: Any, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        self._number = loop.task_count = getattr(loop, "task_count", 0) + 1  # type: ignore[attr-defined]
        super().__init__(*args, loop=loop, **options)

    def __hash__(self) -> int:
        return self._number


def _create_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, Result],
    context: Context | None = None,
    **options: Any,
) -> "asyncio.Task[Result]":
    """Create a task that its process knows."""
    context = context or copy_context()
    task = _NumberedTask(coroutine, loop=loop, context=context, **options)
    process = context.get(_current)
    if process is not None:
        process.tasks[task] = None
        task.add_done_callback(process.tasks.pop)
    return task
