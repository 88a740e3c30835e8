"""Prints the rows of a query as a table, JSON or CSV.

Times are in UTC. Bytes are printed as text if they are UTF-8, and in hexadecimal otherwise. Below a
table, a line shows the number of rows, and whether the limit cut off more.
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


class OutputFormat(StrEnum):
    """Output formats of rows."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def print_result(
    engine: "SqlEngine", statement: str, output: OutputFormat, limit: int | None
) -> None:
    """Run a statement and print its result."""
    began_s = time.monotonic()
    # One row more than the limit shows whether there are more rows.
    result = engine.run(statement, None if limit is None else limit + 1)
    seconds = time.monotonic() - began_s
    shown = result.rows[:limit]
    if not result.columns:
        if output is OutputFormat.TABLE:
            print_line((f"done in {seconds:.1f} s", "dim"))
    elif output is OutputFormat.JSON:
        rows = [dict(zip(result.columns, map(to_json_value, row), strict=True)) for row in shown]
        print_data(rows, Output.JSON)
    elif output is OutputFormat.CSV:
        typer.echo(format_csv(result.columns, shown), nl=False)
    else:
        print_table(result.columns, ([format_cell(value) for value in row] for row in shown))
        more = f" (limited by --limit {limit})" if len(result.rows) > len(shown) else ""
        print_line((f"{pluralize(len(shown), 'row')}{more}, {seconds:.1f} s", "dim"))


def format_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    r"""Rows with a header; null becomes an empty field.

    >>> format_csv(["id", "note"], [(1, "a, b"), (2, None)])
    'id,note\n1,"a, b"\n2,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_format(value) for value in row] for row in rows)
    return text.getvalue()


def format_cell(value: Any) -> Part:
    """Format a value for a table.

    >>> format_cell(None), format_cell(b"text"), format_cell({"city": "Bonn"}), format_cell(True)
    (('null', 'dim'), 'text', '{"city": "Bonn"}', 'true')
    """
    return ("null", "dim") if value is None else _format(value)


def to_json_value(value: Any) -> Any:
    r"""Convert a value to one that JSON can represent.

    >>> to_json_value({"at": datetime(2026, 1, 31, 12, tzinfo=UTC), "raw": [b"\xff\x00"]})
    {'at': '2026-01-31T12:00:00Z', 'raw': ['0xff00']}
    """
    if isinstance(value, dict):
        return {str(to_json_value(key)): to_json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else _format_other(value)


def _format_other(value: Any) -> str:
    """Format a value without a JSON type."""
    match value:
        case bytes():
            return _decode_or_hex(value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():  # Also a datetime without a time zone.
            return value.isoformat()
    return str(value)


def _format(value: Any) -> str:
    converted = to_json_value(value)
    if converted is None:
        return ""
    return converted if isinstance(converted, str) else json.dumps(converted, ensure_ascii=False)


def _decode_or_hex(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
