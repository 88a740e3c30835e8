"""What a job says when it is done: a table, facts about the whole, and problems.

Jobs fill it and the command line prints it, as a table for people or as one JSON document for
programs. Names are those of the JSON, such as `topic` or `writtenBytes`; how a name ends tells what
it counts: `Bytes`, `Ms` (a time since 1970) or `Seconds`.
"""

import msgspec

Cell = str | int | float | bool | None


class JobResult(msgspec.Struct, frozen=True):
    """The result of a job."""

    job: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    facts: dict[str, Cell] = {}
    """About the job as a whole: totals, what it left behind, how long it took."""

    problems: tuple[str, ...] = ()
    """What the user has to see to, in sentences; with any of them, the command exits with 1."""

    newest_ms: dict[str, int] = {}
    """By topic, the time of the newest record that was handled; for the record of the run."""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "every column has a cell"

    def data(self) -> dict[str, object]:
        """The summary for programs.

        >>> JobResult("merge", ("topic", "segments"), (("orders", 3),), {"seconds": 1.5}).data()
        {'job': 'merge', 'seconds': 1.5, 'rows': [{'topic': 'orders', 'segments': 3}]}
        """
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        problems = {"problems": list(self.problems)} if self.problems else {}
        return {"job": self.job, **self.facts, "rows": rows, **problems}
