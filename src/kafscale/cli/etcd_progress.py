"""A bar that shows how many bytes are done; on a terminal only, and never among the results."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bytes_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Something to tell how many bytes are done, and how many there are."""
    from rich.console import Console  # noqa: PLC0415 - what prints prettily loads slowly.
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn  # noqa: PLC0415

    errors = Console(stderr=True)
    with Progress(
        "{task.description}", BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(),
        console=errors, disable=not errors.is_terminal, transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
