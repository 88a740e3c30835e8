"""How commands print: lines and tables for people, JSON and YAML for programs, errors apart.

The law: results go to standard output and nothing else does. On a terminal, tables fit its width;
into a pipe, a row is one line, whatever its length. Colour follows the terminal and `NO_COLOR`.
Text is never taken for markup; a part with a style is a pair, `("text", "bold")`.
"""

# ruff: noqa: PLC0415 - what prints prettily loads slowly, and most commands need little of it.

import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console

Part = str | tuple[str, str]

_PIPE_WIDTH = 10_000


class Output(StrEnum):
    """The forms in which a command can print its result."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    Output, typer.Option("--output", "-o", help="Print for people, or for programs.")
]


def print_data(data: object, output: Output) -> None:
    """Print `data` for programs."""
    data = msgspec.to_builtins(data)
    if output is Output.JSON:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        import yaml

        typer.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)


def print_table(columns: Iterable[str], rows: Iterable[Iterable[Part]]) -> None:
    """Print `rows` for people."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text.assemble(cell) for cell in row))
    _console().print(table)


def print_line(*parts: Part, indent: int = 0) -> None:
    """Print one line for people; what does not fit goes on below it, as far to the right."""
    from rich.padding import Padding
    from rich.text import Text

    line = Text.assemble(*parts)
    _console().print(Padding(line, (0, 0, 0, indent), expand=False) if indent else line)


def print_source(text: str) -> None:
    """Print Python source: coloured on a terminal, as it is into a pipe."""
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.syntax import Syntax

    _console().print(Syntax(text, "python", theme="ansi_dark", word_wrap=True))


def print_error(message: str) -> None:
    """Print every line of `message` as an error of its own."""
    from rich.console import Console
    from rich.text import Text

    errors = Console(stderr=True, soft_wrap=True)
    for line in message.splitlines():
        errors.print(Text.assemble(("error: ", "bold red"), line))


def _console() -> "Console":
    """Standard output as it is now, so that whoever has replaced it sees what is printed."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
