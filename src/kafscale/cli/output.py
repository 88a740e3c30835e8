"""Prints results: lines and tables for people, JSON and YAML for programs; and progress bars.

Only results go to standard output; errors and progress go to standard error. On a terminal, tables
fit its width; in a pipe, a row is one line of any length. Colours follow the terminal and
`NO_COLOR`. Text is never interpreted as markup; a styled part is a pair, `("text", "bold")`. Names
and records come from clients: on a terminal, their control characters are printed as escapes.
"""

# ruff: noqa: PLC0415 - rich and yaml are slow to import.

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

Part = str | tuple[str, str]
Result = TypeVar("Result")

_PIPE_WIDTH = 10_000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""All but tabs and line feeds; and those that change the direction of text."""

UpdateProgress = Callable[[int, int], None]
"""Called with the completed amount and the total."""


class Output(StrEnum):
    """Output formats of a result."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="Output format.")]


def print_data(data: object, output: Output) -> None:
    """Print `data` as JSON or YAML."""
    data = msgspec.to_builtins(data)
    if output is Output.JSON:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        import yaml

        typer.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)


def print_result(result: Result, output: Output, as_table: Callable[[Result], None]) -> None:
    """Print a result with `as_table`, or as JSON or YAML."""
    if output is Output.TABLE:
        as_table(result)
    else:
        print_data(result, output)


def print_table(columns: Iterable[str], rows: Iterable[Iterable[Part]]) -> None:
    """Print `rows` as a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text.assemble(_visible(cell)) for cell in row))
    _console().print(table)


def print_line(*parts: Part, indent: int = 0) -> None:
    """Print one line; wrapped lines keep the indent."""
    from rich.padding import Padding
    from rich.text import Text

    line = Text.assemble(*map(_visible, parts))
    _console().print(Padding(line, (0, 0, 0, indent), expand=False) if indent else line)


def print_source(text: str) -> None:
    """Print Python source: highlighted on a terminal, unchanged in a pipe."""
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.syntax import Syntax

    _console().print(Syntax(text, "python", theme="ansi_dark", word_wrap=True))


def print_error(message: str) -> None:
    """Print every line of `message` as a separate error."""
    from rich.console import Console
    from rich.text import Text

    errors = Console(stderr=True, soft_wrap=True)
    for line in message.splitlines():
        errors.print(Text.assemble(("error: ", "bold red"), line))


def visible(text: str) -> str:
    r"""Replace control characters, which a terminal would execute, by escapes.

    >>> visible("\x1b]0;title\x07")
    '\\x1b]0;title\\x07'
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _visible(part: Part) -> Part:
    if not sys.stdout.isatty():
        return part
    return visible(part) if isinstance(part, str) else (visible(part[0]), part[1])


def _console() -> "Console":
    """A console on the current `sys.stdout`, which tests and callers may have replaced."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)


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
