"""Many runs of one story, each with a seed of its own; one that fails says which it was."""

from collections.abc import Callable, Coroutine, Iterable
from random import Random
from typing import Any

from kafscale.testing import virtual_time


def run_each(story: Callable[[Random], Coroutine[Any, Any, None]], seeds: Iterable[int]) -> None:
    for seed in seeds:
        try:
            virtual_time.run(story, seed=seed)
        except BaseException as error:
            error.add_note(f"Run it alone with --simulation-runs 1 --simulation-seed {seed}")
            raise
