"""`kafscale sql`: query topics in SQL, once or in a shell."""

# ruff: noqa: D301, PLC0415 - \b keeps the lines of examples apart; Spark is slow to import.

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kafscale.cli.commands.spark.session import (
    PathOption,
    SessionOptions,
    resolve_location,
    session,
)
from kafscale.cli.commands.sql.printer import OutputFormat

if TYPE_CHECKING:
    from kafscale.spark.sql.engine import SqlEngine


def sql(
    query: Annotated[
        str, typer.Argument(help="SQL statements; without any, a shell starts.", show_default=False)
    ] = "",
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", exists=True, dir_okay=False, help="Read statements from this file."
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", min=0, help="Maximum number of rows to print; 0 prints all."),
    ] = 100,
    output: Annotated[
        OutputFormat, typer.Option("--output", "-o", help="Output format.")
    ] = OutputFormat.TABLE,
    path: PathOption = "",
    spark: SessionOptions,
) -> None:
    """Query topics in SQL: each topic is a table, and the fields of JSON values are columns.

    Every table also has the columns _key, _value, _topic, _partition, _offset, _timestamp and
    _headers. Conditions on _timestamp, _offset and _partition limit what is read.

    Write names with dashes or dots in backquotes. `show tables` lists the topics, `describe TOPIC`
    the columns of a topic.

    \b
    kafscale sql "select status, count(*) from orders group by status"
    kafscale sql 'select * from `page-views` where _timestamp > current_date' -o csv
    kafscale sql
    """
    if query and file is not None:
        raise typer.BadParameter("give statements or --file, not both")
    text = file.read_text(encoding="utf-8") if file is not None else query
    if not text and not sys.stdin.isatty():
        text = sys.stdin.read()
    with _open_engine(path, spark) as engine:
        if text:
            from kafscale.cli.commands.sql.printer import print_result
            from kafscale.spark.sql.statements import split

            for statement in split(text):
                print_result(engine, statement, output, limit or None)
        else:
            from kafscale.cli.commands.sql.shell import run_shell

            run_shell(engine, output, limit or None)


@contextmanager
def _open_engine(path: str, options: SessionOptions) -> "Iterator[SqlEngine]":
    """Start a Spark session, and open the topics at a path."""
    from rich.console import Console

    location = resolve_location(path)
    with ExitStack() as stack:
        if "pyspark" not in sys.modules:  # An existing session already has a warehouse.
            # Tables that statements create are temporary, and never in the working directory.
            tables = tempfile.TemporaryDirectory(prefix="kafscale-", ignore_cleanup_errors=True)
            warehouse = f"spark.sql.warehouse.dir={stack.enter_context(tables)}"
            options = replace(options, conf=[warehouse, *options.conf])
        with Console(stderr=True).status("Starting Spark ..."):
            spark = stack.enter_context(session("sql", options))
            from kafscale.spark.sql.engine import SqlEngine

            engine = SqlEngine(spark, location)
        yield engine
