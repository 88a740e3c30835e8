"""Bars that show how far something has come; on a terminal only, and never among the results."""

# ruff: noqa: PLC0415 - what prints prettily loads slowly.

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Tell = Callable[[int, int], None]


def progress_bar(what: str) -> AbstractContextManager[Tell]:
    """Something to tell how much is done, and how much there is to do."""
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    return _bar(what, MofNCompleteColumn(), TimeElapsedColumn())


def bytes_bar(what: str) -> AbstractContextManager[Tell]:
    """Something to tell how many bytes are done, and how many there are."""
    from rich.progress import DownloadColumn, TransferSpeedColumn

    return _bar(what, DownloadColumn(binary_units=True), TransferSpeedColumn())


@contextmanager
def _bar(what: str, *columns: "ProgressColumn") -> Iterator[Tell]:
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
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
