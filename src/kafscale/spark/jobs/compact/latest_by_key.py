"""The newest record of each key: rows that are gathered, boiled down and shared out.

Of each key of a partition a row tells where its oldest and its newest record are, and whether the
newest is a mark of deletion whose time has come. Rows of one key can be boiled down to one in any
order and as often as one likes, in the task that found them and after a shuffle. They travel as
bytes, many at a time. Pure.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

ROW: Final = np.dtype(
    [
        ("place", "<i4"),
        ("first_hash", "<i8"),
        ("second_hash", "<i8"),
        ("oldest", "<i8"),
        ("newest", "<i8"),
        ("is_expired", "?"),
    ]
)
"""A partition by its number, a key by its hash, and what is known of it."""

Rows = NDArray[np.void]

ROWS_MAX: Final = 1_000_000
"""How many rows are gathered before they are boiled down."""

INCOMPLETE: Final = -1
"""The offsets of a row which says that not everything of a partition could be read."""


class Newest:
    """Gathers rows; its memory is bounded by the keys that there are, not by their records."""

    def __init__(self, rows_max: int = ROWS_MAX) -> None:
        self._rows_max = rows_max
        self._gathered: list[Rows] = []
        self._count = 0
        self._limit = rows_max

    def add(self, rows: Rows) -> None:
        self._gathered.append(rows)
        self._count += rows.size
        if self._count > self._limit:
            self._limit = self.boiled_down().size + self._rows_max

    def boiled_down(self) -> Rows:
        """A row for each key so far."""
        rows = boil_down(np.concatenate([np.empty(0, ROW), *self._gathered]))
        self._gathered, self._count = [rows], rows.size
        return rows


def boil_down(rows: Rows) -> Rows:
    """A row for each key of each partition."""
    if not rows.size:
        return rows
    fields = ("newest", "second_hash", "first_hash", "place")
    ordered = rows[np.lexsort([rows[name] for name in fields])]
    is_start = np.ones(ordered.size, np.bool_)
    is_start[1:] = np.logical_or.reduce(
        [ordered[name][1:] != ordered[name][:-1] for name in fields[1:]]
    )
    starts = np.flatnonzero(is_start)
    ends = np.append(starts[1:], ordered.size) - 1
    boiled: Rows = ordered[ends]
    boiled["oldest"] = np.minimum.reduceat(ordered["oldest"], starts)
    return boiled


def incomplete(place: int) -> Rows:
    """What is told of a partition of which not everything could be read."""
    return np.array([(place, 0, 0, INCOMPLETE, INCOMPLETE, False)], ROW)


# --- on their way ---------------------------------------------------------------------------------


def by_bucket(rows: Rows, buckets: int) -> Iterator[tuple[int, bytes]]:
    """The rows shared out by their keys, so that all of one key come together."""
    if not rows.size:
        return
    chosen = rows["first_hash"].astype(np.uint64) % np.uint64(buckets)
    ordered = np.argsort(chosen, kind="stable")
    numbers, starts = np.unique(chosen[ordered], return_index=True)
    for number, several in zip(numbers.tolist(), np.split(ordered, starts[1:]), strict=True):
        yield number, rows[several].tobytes()


def arrived(several: Iterable[bytes]) -> Rows:
    """Rows that were shared out, together again and boiled down."""
    gathered = Newest()
    for data in several:
        gathered.add(np.frombuffer(data, ROW))
    return gathered.boiled_down()
