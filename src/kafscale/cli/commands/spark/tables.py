"""Tables of `kafscale spark`: job results and diagnostics."""

import re
from typing import TYPE_CHECKING, Any

from kafscale.cli.output import Part, print_error, print_line, print_table
from kafscale.text.formatting import format_size, format_time

if TYPE_CHECKING:
    from kafscale.spark.runtime.job_result import Cell, JobResult

_UNIT = re.compile(r"(Bytes|Ms)$")


def print_summary(summary: "JobResult") -> None:
    if summary.rows:
        print_table(
            [title(column) for column in summary.columns],
            (
                [cell(column, value) for column, value in zip(summary.columns, row, strict=True)]
                for row in summary.rows
            ),
        )
        print_line()
    facts = [f"{title(name)} {cell(name, value)}" for name, value in summary.facts.items()]
    print_line((summary.job, "bold"), ": ", ", ".join(facts) or "done")
    for problem in summary.problems:
        print_error(problem)


def print_diagnostics(diagnostics: dict[str, Any]) -> None:
    for name, version in diagnostics["packages"].items():
        _print_fact(name, version)
    _print_fact("python", "{version}, {program}".format_map(diagnostics["python"]))
    if problem := diagnostics["java"].get("problem"):
        _print_fact("java", (problem, "red"))
    else:
        _print_fact("java", "{version}, {home}, found by {foundBy}".format_map(diagnostics["java"]))
    if diagnostics["sparkHome"]:
        _print_fact("SPARK_HOME", diagnostics["sparkHome"])
    _print_fact("jars", diagnostics["jars"]["directory"])
    connector = diagnostics["jars"]["kafkaConnector"]
    _print_fact(
        "", ", ".join(connector) or "no Kafka connector; download it with: kafscale spark jars"
    )


def title(name: str) -> str:
    """A JSON name as words, without its unit.

    >>> title("writtenBytes"), title("recordCount"), title("topic"), title("bytes")
    ('written', 'record count', 'topic', 'bytes')
    """
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", _UNIT.sub("", name) or name).lower()


def cell(name: str, value: "Cell") -> str:
    """Format a value by the unit in its name.

    >>> cell("writtenBytes", 2048), cell("records", 12345), cell("oldestMs", 0), cell("key", None)
    ('2.0 KiB', '12,345', '1970-01-01T00:00:00.000Z', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if name.endswith(("Bytes", "bytes")):
        return format_size(value)
    if isinstance(value, float):
        return f"{value:,.1f}"
    return format_time(value) if name.endswith("Ms") else f"{value:,}"


def _print_fact(label: str, fact: Part) -> None:
    print_line((f"  {label:<11}", "dim"), fact)
