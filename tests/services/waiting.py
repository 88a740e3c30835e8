"""Waiting for something to become true, however slow the machine is."""

import time
from collections.abc import Callable

PAUSE_S = 0.02


def wait_until(
    condition: Callable[[], object], what: str, *, seconds_max: float = 40, seen: object = ""
) -> float:
    """Return when the condition holds, with the seconds that it took.

    Otherwise the complaint says what was waited for and, by `seen`, what there is instead: if that
    is a function, it is called only then.
    """
    began = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began
        if waited_s >= seconds_max:
            there = seen() if callable(seen) else seen
            raise AssertionError(f"waited {waited_s:.0f} s for {what}: {there}")
        time.sleep(PAUSE_S)
    return time.monotonic() - began
