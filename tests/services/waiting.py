"""Waits for a condition, with a generous limit for slow machines."""

import time
from collections.abc import Callable

PAUSE_S = 0.05
"""Conditions start requests, and the machine is shared."""


def wait_until(
    condition: Callable[[], object], what: str, *, seconds_max: float = 40, seen: object = ""
) -> float:
    """Wait until the condition holds; return the seconds that it took.

    On timeout, the error names `what` was expected and what was `seen`, which may be a function.
    """
    began = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began
        if waited_s >= seconds_max:
            state = seen() if callable(seen) else seen
            raise AssertionError(f"waited {waited_s:.0f} s for {what}: {state}")
        time.sleep(PAUSE_S)
    return time.monotonic() - began
