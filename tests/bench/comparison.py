"""A comparison: figures of several brokers, measured in turns, reported as medians and ratios.

Invariant: no figure is reported without that of the reference, measured in the same run. Absolute
figures mean little on a shared machine; ratios of medians mean more.
"""

import statistics
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

Figures = dict[str, float]


@dataclass
class Comparison:
    """One table: a row for each candidate, a column for each figure."""

    title: str
    reference: str | None = None
    rounds: dict[str, list[Figures]] = field(default_factory=dict)

    def add(self, candidate: str, figures: Figures) -> None:
        self.rounds.setdefault(candidate, []).append(figures)

    def medians(self, candidate: str) -> Figures:
        rounds = self.rounds[candidate]
        return {name: statistics.median(round_[name] for round_ in rounds) for name in rounds[0]}

    def table(self) -> Table:
        columns = list(dict.fromkeys(name for rounds in self.rounds.values() for name in rounds[0]))
        table = Table("who", *columns, title=self.title)
        for column in table.columns[1:]:
            column.justify = "right"
        reference = self.medians(self.reference) if self.reference in self.rounds else {}
        for candidate in self.rounds:
            medians = self.medians(candidate)
            cells = [_cell(medians.get(name), reference.get(name)) for name in columns]
            table.add_row(candidate, *cells)
        return table

    def to_json(self) -> dict[str, Any]:
        """The figures of every round, and their medians."""
        return {
            candidate: {"medians": self.medians(candidate), "rounds": rounds}
            for candidate, rounds in self.rounds.items()
        }


def _cell(figure: float | None, reference: float | None) -> str:
    if figure is None:
        return ""
    text = f"{figure:,.1f}"
    return f"{text} ({figure / reference:.2f} x)" if reference else text
