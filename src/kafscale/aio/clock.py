"""The clocks of a broker, which everybody else is handed."""

import time

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """A clock in milliseconds that is never set, for measuring how long something lasts.

    Where there is one that goes on while the machine sleeps, it is that: so do leases.
    """
    return time.clock_gettime_ns(_STEADY) // 1_000_000
