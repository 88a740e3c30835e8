"""Progress bars on standard error, shown only if it is a terminal."""

# ruff: noqa: PLC0415 - rich is slow to import.

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

UpdateProgress = Callable[[int, int], None]
"""Called with the completed amount and the total."""


def progress_bar(description: str) -> AbstractContextManager[UpdateProgress]:
    """A progress bar that counts items."""
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    return _bar(description, MofNCompleteColumn(), TimeElapsedColumn())


def bytes_bar(description: str) -> AbstractContextManager[UpdateProgress]:
    """A progress bar that counts bytes and shows the transfer rate."""
    from rich.progress import DownloadColumn, TransferSpeedColumn

    return _bar(description, DownloadColumn(binary_units=True), TransferSpeedColumn())


@contextmanager
def _bar(description: str, *columns: "ProgressColumn") -> Iterator[UpdateProgress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    errors = Console(stderr=True)
    with Progress(
        "{task.description}",
        BarColumn(),
        *columns,
        console=errors,
        disable=not errors.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
