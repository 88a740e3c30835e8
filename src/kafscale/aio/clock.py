"""Clocks, which are passed to the code that needs the time."""

import time

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> int:
    """Wall-clock time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """Monotonic time in milliseconds, for durations.

    It includes the time in which the machine is suspended, if the system supports that, because
    leases expire in that time as well.
    """
    return time.clock_gettime_ns(_STEADY) // 1_000_000
