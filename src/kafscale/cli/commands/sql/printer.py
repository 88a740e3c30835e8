"""How the rows of a query are printed: as a table for people, as JSON or CSV for programs.

Times are in UTC. Bytes are shown as text where they are text, and in hexadecimal otherwise. A table
says how many rows there are below it, and whether there are more than were asked for.
"""

import csv
import io
import json
import math
import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from kafscale.cli.output import Output, Part, print_data, print_line, print_table
from kafscale.text.formatting import pluralize

if TYPE_CHECKING:
    from kafscale.spark.sql.engine import SqlEngine


class Form(StrEnum):
    """The forms in which rows can be printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def print_result(topics: "SqlEngine", statement: str, form: Form, limit: int | None) -> None:
    """Run a statement, and print what it gives."""
    began_s = time.monotonic()
    # One more than is printed tells whether there are more.
    found = topics.run(statement, None if limit is None else limit + 1)
    seconds = time.monotonic() - began_s
    shown = found.rows[:limit]
    if not found.columns:
        if form is Form.TABLE:
            print_line((f"done in {seconds:.1f} s", "dim"))
    elif form is Form.JSON:
        rows = [dict(zip(found.columns, map(plain, row), strict=True)) for row in shown]
        print_data(rows, Output.JSON)
    elif form is Form.CSV:
        typer.echo(as_csv(found.columns, shown), nl=False)
    else:
        print_table(found.columns, ([cell(value) for value in row] for row in shown))
        more = f", and there are more (--limit {limit})" if len(found.rows) > len(shown) else ""
        print_line((f"{pluralize(len(shown), 'row')}{more}, {seconds:.1f} s", "dim"))


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""Rows below their header; what is null is empty.

    >>> as_csv(["id", "note"], [(1, "a, b"), (2, None)])
    'id,note\n1,"a, b"\n2,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(value) for value in row] for row in rows)
    return text.getvalue()


def cell(value: Any) -> Part:
    """A value in a table.

    >>> cell(None), cell(b"text"), cell({"city": "Bonn"}), cell(True)
    (('null', 'dim'), 'text', '{"city": "Bonn"}', 'true')
    """
    return ("null", "dim") if value is None else _text(value)


def plain(value: Any) -> Any:
    r"""A value as JSON has it.

    >>> plain({"at": datetime(2026, 1, 31, 12, tzinfo=UTC), "raw": [b"\xff\x00"]})
    {'at': '2026-01-31T12:00:00Z', 'raw': ['0xff00']}
    """
    if isinstance(value, dict):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else _said(value)


def _said(value: Any) -> str:
    """A value that JSON has no kind for."""
    match value:
        case bytes():
            return _decoded(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():  # Also a time of no zone.
            return value.isoformat()
    return str(value)


def _text(value: Any) -> str:
    found = plain(value)
    if found is None:
        return ""
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
