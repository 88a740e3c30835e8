"""`kafscale sql`: ask topics in SQL, once or in a shell."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; Spark is slow to load.

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.commands.spark.session import (
    ConfOption,
    MasterOption,
    PathOption,
    locate,
    session,
)
from kafscale.cli.commands.sql.printer import Form

if TYPE_CHECKING:
    from kafscale.spark.sql.engine import SqlEngine


def sql(
    query: Annotated[
        str, typer.Argument(help="Statements of SQL; without any, a shell.", show_default=False)
    ] = "",
    *,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", exists=True, dir_okay=False, help="Read statements from it."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="How many rows to print at most; 0 for all.")
    ] = 100,
    output: Annotated[
        Form, typer.Option("--output", "-o", help="Print for people, or for programs.")
    ] = Form.TABLE,
    path: PathOption = "",
    master: MasterOption = "",
    conf: ConfOption = [],  # noqa: B006 - typer makes a list of its own.
) -> None:
    """Ask topics in SQL: each is a table, and fields of JSON values are its columns.

    Every table has _key, _value, _topic, _partition, _offset, _timestamp and _headers as well;
    conditions on _timestamp, _offset and _partition decide what is read at all.

    Names with dashes or dots are written in back quotes. What there is, `show tables` and
    `describe TOPIC` tell.

    \b
    kafscale sql "select status, count(*) from orders group by status"
    kafscale sql 'select * from `page-views` where _timestamp > current_date' -o csv
    kafscale sql
    """
    if query and file is not None:
        raise typer.BadParameter("give statements, or a file with them, not both")
    text = file.read_text(encoding="utf-8") if file is not None else query
    if not text and not sys.stdin.isatty():
        text = sys.stdin.read()
    with _topics(path, master, conf) as topics:
        if text:
            from kafscale.cli.commands.sql.printer import print_result
            from kafscale.spark.sql.statements import split

            for statement in split(text):
                print_result(topics, statement, output, limit or None)
        else:
            from kafscale.cli.commands.sql.shell import converse

            converse(topics, output, limit or None)


@contextmanager
def _topics(path: str, master: str, conf: list[str]) -> "Iterator[SqlEngine]":
    """The topics at a path, on a session that takes some time to start."""
    from rich.console import Console

    location = locate(path)
    with ExitStack() as stack:
        settings = list(conf)
        if "pyspark" not in sys.modules:  # A session that is there already has a place for tables.
            # Tables that somebody makes are gone later, and never in the working directory.
            tables = tempfile.TemporaryDirectory(prefix="kafscale-", ignore_cleanup_errors=True)
            settings.insert(0, f"spark.sql.warehouse.dir={stack.enter_context(tables)}")
        with Console(stderr=True).status("Starting Spark ..."):
            spark = stack.enter_context(session("sql", master, settings))
            from kafscale.spark.sql.engine import SqlEngine

            topics = SqlEngine(spark, location)
        yield topics
