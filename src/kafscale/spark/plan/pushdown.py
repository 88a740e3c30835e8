"""Filter pushdown: turns the filters of a query into bounds of the scan.

Spark passes the conjuncts of a condition, each about one column. Invariants: filters on topic,
partition and offset that are accepted hold for every planned record, so Spark does not evaluate
them again; a lower bound of the timestamp only narrows the scan and is also returned to Spark; all
other filters are returned unchanged. An error here would silently lose records, so a doubtful
filter is returned to Spark.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kafscale.storage.formats.object_keys import INT64_MAX

_NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_COMPARISONS: Final[Mapping[type[Filter], Callable[[Any, Any], bool]]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    In: lambda value, values: value in values,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}
"""Filters as functions of a column value and the operand. Spark compares strings by their UTF-8
bytes, whose order is that of the code points."""


class Comparison(msgspec.Struct, frozen=True):
    """A comparison that a topic name or a partition index must pass."""

    kind: type[Filter]
    value: Any
    is_negated: bool

    def passes(self, value: str | int) -> bool:
        return _COMPARISONS[self.kind](value, self.value) is not self.is_negated


class ScanBounds(msgspec.Struct):
    """Bounds of the records that can pass the accepted filters."""

    topic_comparisons: list[Comparison] = []
    partition_comparisons: list[Comparison] = []
    start_offset: int = 0
    end_offset: int = INT64_MAX
    since_ms: int | None = None
    is_empty: bool = False

    def includes(self, topic: str, partition: int) -> bool:
        """Whether a partition can hold such records."""
        return (
            not self.is_empty
            and all(comparison.passes(topic) for comparison in self.topic_comparisons)
            and all(comparison.passes(partition) for comparison in self.partition_comparisons)
        )

    def clip(self, start_offset: int, end_offset: int) -> tuple[int, int]:
        """Clip a range of offsets to the bounds."""
        start_offset = max(start_offset, self.start_offset)
        return start_offset, max(start_offset, min(end_offset, self.end_offset))


def push_down(filters: Iterable[Filter]) -> tuple[ScanBounds, list[Filter]]:
    """Return the bounds of the scan, and the filters that Spark has to evaluate."""
    bounds = ScanBounds()
    remaining = [filter_ for filter_ in filters if not _accept(bounds, filter_)]
    return bounds, remaining


def _accept(bounds: ScanBounds, filter_: Filter) -> bool:
    """Narrow the bounds; return whether every record within them passes the filter."""
    is_negated = isinstance(filter_, Not)
    inner = filter_.child if isinstance(filter_, Not) else filter_
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    column = path[0] if len(path) == 1 else None
    if isinstance(inner, IsNull | IsNotNull) and column in _NEVER_NULL:
        # In a column without nulls, one of the two always holds and the other never.
        bounds.is_empty |= isinstance(inner, IsNull) is not is_negated
        return True
    match column:
        case "topic":
            return _accept_comparison(bounds.topic_comparisons, str, inner, is_negated=is_negated)
        case "partition":
            return _accept_comparison(
                bounds.partition_comparisons, int, inner, is_negated=is_negated
            )
        case "offset":
            return _accept_offset(bounds, filter_)
        case "timestamp":
            _narrow_timestamp(bounds, filter_)
    return False


def _accept_comparison(
    comparisons: list[Comparison], kind: type, inner: Filter, *, is_negated: bool
) -> bool:
    value = getattr(inner, "value", None)
    values = value if isinstance(inner, In) else [value]
    if type(inner) not in _COMPARISONS or any(type(each) is not kind for each in values or ()):
        return False
    if isinstance(inner, StringContains | StringStartsWith | StringEndsWith) and kind is not str:
        return False
    comparisons.append(Comparison(type(inner), value, is_negated))
    return True


# --- offsets and timestamps -----------------------------------------------------------------------


def _accept_offset(bounds: ScanBounds, filter_: Filter) -> bool:
    match filter_:
        case EqualTo(_, int(value)) | EqualNullSafe(_, int(value)):
            _narrow_offsets(bounds, value, value + 1)
        case GreaterThan(_, int(value)):
            _narrow_offsets(bounds, value + 1, INT64_MAX)
        case GreaterThanOrEqual(_, int(value)):
            _narrow_offsets(bounds, value, INT64_MAX)
        case LessThan(_, int(value)):
            _narrow_offsets(bounds, 0, value)
        case LessThanOrEqual(_, int(value)):
            _narrow_offsets(bounds, 0, value + 1)
        case In(_, values) if values and all(type(value) is int for value in values):
            _narrow_offsets(bounds, min(values), max(values) + 1)
            return bool(len(set(values)) == max(values) - min(values) + 1)
        case _:
            return False
    return True


def _narrow_offsets(bounds: ScanBounds, start_offset: int, end_offset: int) -> None:
    bounds.start_offset = max(bounds.start_offset, start_offset)
    bounds.end_offset = min(bounds.end_offset, end_offset)


def _narrow_timestamp(bounds: ScanBounds, filter_: Filter) -> None:
    match filter_:
        case (
            GreaterThan(_, datetime() as value)
            | GreaterThanOrEqual(_, datetime() as value)
            | EqualTo(_, datetime() as value)
            | EqualNullSafe(_, datetime() as value)
        ):
            earliest = value
        case In(_, values) if values and all(isinstance(value, datetime) for value in values):
            earliest = min(values)
        case _:
            return
    since_ms = _milliseconds(earliest)
    if since_ms is not None and (bounds.since_ms is None or since_ms > bounds.since_ms):
        bounds.since_ms = since_ms


def _milliseconds(value: datetime) -> int | None:
    """Return a time in ms, rounded down; None if it has no time zone."""
    if value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(milliseconds=1)
