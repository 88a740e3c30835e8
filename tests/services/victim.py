"""Work in a process of its own that is killed, as by a loss of power, when it has come so far.

    steps = kill_at(restore_partition, item, 3)

The work tells its steps to a function that it is handed, and each waits there until it may go on.
So it is dead exactly at the step at which it was to be killed.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

STEP_S_MAX = 60


def kill_at(work: Callable[[Any, Callable[[str], None]], object], item: object, step: int) -> bool:
    """Kill the work at a step, counted from 1; whether it came so far."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_live, args=(work, item, theirs))
    process.start()
    theirs.close()
    try:
        for _ in range(step - 1):
            if not _wait(ours):
                return False
            ours.send("go on")
        return _wait(ours)
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def _wait(connection: Connection) -> bool:
    """Wait for a step; False if there are no more."""
    assert connection.poll(STEP_S_MAX), "the work neither goes on nor ends"
    try:
        told = connection.recv()
    except EOFError:
        raise AssertionError("the work has failed; what it said is above") from None
    return bool(told != _DONE)


_DONE = "done"


def _live(
    work: Callable[[Any, Callable[[str], None]], object], item: object, to: Connection
) -> None:
    def step(name: str) -> None:
        to.send(name)
        to.recv()

    work(item, step)
    to.send(_DONE)
