"""Injects the faults of a schedule into a cluster, and removes all of them at the end."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from chaos.schedule import Step
from services.cluster import Cluster


class FaultAction(NamedTuple):
    """A fault was started or ended, at this time."""

    time_ns: int
    what: str


class Nemesis:
    """Injects faults (Jepsen's word for it)."""

    def __init__(
        self, cluster: Cluster, steps: Sequence[Step], *, should_stop: Callable[[], bool]
    ) -> None:
        """`should_stop` is called periodically; True ends the schedule early."""
        self._cluster = cluster
        self._steps = steps
        self._should_stop = should_stop
        self.actions: list[FaultAction] = []

    def work(self, duration_s: float) -> None:
        """Run the schedule; return when the time is over and all faults have ended."""
        began_s = time.monotonic()
        turns = [(step.begin_s, 1, step) for step in self._steps]
        turns += [(step.end_s, 0, step) for step in self._steps]
        active: list[Step] = []
        try:
            for due_s, is_beginning, step in sorted(turns, key=lambda turn: turn[:2]):
                if not self._sleep_until(began_s + due_s):
                    return
                if is_beginning:
                    active.append(step)
                    self._do(f"begin {step.fault}", step.fault.begin)
                else:
                    active.remove(step)
                    self._do(f"end   {step.fault}", step.fault.end)
            self._sleep_until(began_s + duration_s)
        finally:
            for step in active:
                self._do(f"end   {step.fault}", step.fault.end)

    def _do(self, what: str, act: Callable[[Cluster], None]) -> None:
        self.actions.append(FaultAction(time.monotonic_ns(), what))
        act(self._cluster)

    def _sleep_until(self, due_s: float) -> bool:
        """Sleep; return False if the schedule should stop."""
        while (left_s := due_s - time.monotonic()) > 0:
            if self._should_stop():
                return False
            time.sleep(min(left_s, 0.2))
        return True
