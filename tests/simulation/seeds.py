"""Runs a scenario with many seeds; a failure names its seed."""

from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any

from doubles import virtual_time


def run_each(scenario: Callable[[Random], Coroutine[Any, Any, None]], seeds: Iterable[int]) -> None:
    for seed in seeds:
        try:
            virtual_time.run(scenario, seed=seed)
        except BaseException as error:
            error.add_note(f"Run it alone with --simulation-runs 1 --simulation-seed {seed}")
            raise
