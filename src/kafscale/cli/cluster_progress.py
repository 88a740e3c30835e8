"""A bar that shows how far a cluster has come; on a terminal only, and never among the results."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Something to tell how much is done, and how much there is to do."""
    from rich.console import Console  # noqa: PLC0415 - what prints prettily loads slowly.
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn  # noqa: PLC0415

    errors = Console(stderr=True)
    with Progress(
        "{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=errors, disable=not errors.is_terminal, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
