"""Runs a function in its own process and kills that process at a chosen step.

    was_reached = kill_at_step(restore_partition, item, 3)

The function reports its steps to a callback, which blocks until the test lets it continue. So the
process is killed exactly at that step, as by a loss of power.
"""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

STEP_S_MAX = 60


def kill_at_step(
    work: Callable[[Any, Callable[[str], None]], object], item: object, step: int
) -> bool:
    """Kill the work at a step, counted from 1; return whether it reached that step."""
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    process = context.Process(target=_run_steps, args=(work, item, child_end))
    process.start()
    child_end.close()
    try:
        for _ in range(step - 1):
            if not _wait_for_step(parent_end):
                return False
            parent_end.send("continue")
        return _wait_for_step(parent_end)
    finally:
        process.kill()
        process.join()
        process.close()
        parent_end.close()


def _wait_for_step(connection: Connection) -> bool:
    """Wait for the next step; return False if the work is done."""
    assert connection.poll(STEP_S_MAX), f"the process reported no step within {STEP_S_MAX} s"
    try:
        message = connection.recv()
    except EOFError:
        raise AssertionError("the process failed; its output is above") from None
    return bool(message != _DONE)


_DONE = "done"


def _run_steps(
    work: Callable[[Any, Callable[[str], None]], object], item: object, to: Connection
) -> None:
    def step(name: str) -> None:
        to.send(name)
        to.recv()

    work(item, step)
    to.send(_DONE)
