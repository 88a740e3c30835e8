"""Carries out a schedule on a cluster, step by step, and puts everything right at the end."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from chaos.schedule import Step
from services.cluster import Cluster


class Deed(NamedTuple):
    """Something that was really done, at that time."""

    time_ns: int
    what: str


class Nemesis:
    """The one who brings trouble."""

    def __init__(
        self, cluster: Cluster, steps: Sequence[Step], *, is_over: Callable[[], bool]
    ) -> None:
        """`is_over` is asked again and again whether there is any sense in going on."""
        self._cluster = cluster
        self._steps = steps
        self._is_over = is_over
        self.deeds: list[Deed] = []

    def work(self, duration_s: float) -> None:
        """Return when the time is up and everything has ended."""
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
                    self._do(f"begin {step.trouble}", step.trouble.begin)
                else:
                    active.remove(step)
                    self._do(f"end   {step.trouble}", step.trouble.end)
            self._sleep_until(began_s + duration_s)
        finally:
            for step in active:
                self._do(f"end   {step.trouble}", step.trouble.end)

    def _do(self, what: str, act: Callable[[Cluster], None]) -> None:
        self.deeds.append(Deed(time.monotonic_ns(), what))
        act(self._cluster)

    def _sleep_until(self, due_s: float) -> bool:
        """Whether it is worth while to go on then."""
        while (left_s := due_s - time.monotonic()) > 0:
            if self._is_over():
                return False
            time.sleep(min(left_s, 0.2))
        return True
