"""The result of a job: a table, facts about the job as a whole, and problems.

The command line prints it as a table or as one JSON document. Names are those of the JSON, such as
`topic` or `writtenBytes`; the suffix is the unit: `Bytes`, `Ms` (since 1970) or `Seconds`.
"""

import msgspec

Cell = str | int | float | bool | None


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job."""

    job: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    facts: dict[str, Cell] = {}
    """Facts about the job as a whole: totals, leftovers, duration."""

    problems: tuple[str, ...] = ()
    """Sentences about what the user has to fix; with any, the command exits with 1."""

    newest_ms: dict[str, int] = {}
    """The timestamp of the newest processed record by topic, for the run record."""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "every column has a cell"

    def data(self) -> dict[str, object]:
        """Return the result as JSON data.

        >>> JobResult("merge", ("topic", "segments"), (("orders", 3),), {"seconds": 1.5}).data()
        {'job': 'merge', 'seconds': 1.5, 'rows': [{'topic': 'orders', 'segments': 3}]}
        """
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        problems = {"problems": list(self.problems)} if self.problems else {}
        return {"job": self.job, **self.facts, "rows": rows, **problems}
