"""What the filters of a query say about where its records can lie.

Spark hands the parts of a condition that are all to hold, each about one column. The laws: what is
taken here in full, about topic, partition and offset, holds for every record that is then planned,
so that Spark need not look again; what only narrows the search, a lower bound of time, is handed
back to Spark as well; and everything else is handed back untouched. A wrong answer here would lose
records without a word, so that whoever is in doubt hands back.
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
"""Filters as functions of a value and of what it is compared with; of strings, Spark compares the
bytes in UTF-8, whose order is that of their characters."""


class Comparison(msgspec.Struct, frozen=True):
    """A comparison that the name of a topic, or the number of a partition, has to pass."""

    kind: type[Filter]
    value: Any
    is_negated: bool

    def passes(self, value: str | int) -> bool:
        return _COMPARISONS[self.kind](value, self.value) is not self.is_negated


class Scope(msgspec.Struct):
    """Where records can lie that pass all filters so far."""

    topic_tests: list[Comparison] = []
    partition_tests: list[Comparison] = []
    start_offset: int = 0
    end_offset: int = INT64_MAX
    since_ms: int | None = None
    is_empty: bool = False

    def has(self, topic: str, partition: int) -> bool:
        """Whether a partition can hold some."""
        return (
            not self.is_empty
            and all(test.passes(topic) for test in self.topic_tests)
            and all(test.passes(partition) for test in self.partition_tests)
        )

    def clip(self, start_offset: int, end_offset: int) -> tuple[int, int]:
        """The offsets among these that can have some."""
        start_offset = max(start_offset, self.start_offset)
        return start_offset, max(start_offset, min(end_offset, self.end_offset))


def narrow(filters: Iterable[Filter]) -> tuple[Scope, list[Filter]]:
    """The scope that filters leave, and those that Spark has to apply itself."""
    scope = Scope()
    left = [found for found in filters if not _takes(scope, found)]
    return scope, left


def _takes(scope: Scope, found: Filter) -> bool:
    """Narrow the scope; whether the filter holds then for everything in it."""
    is_negated = isinstance(found, Not)
    inner = found.child if isinstance(found, Not) else found
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    column = path[0] if len(path) == 1 else None
    if isinstance(inner, IsNull | IsNotNull) and column in _NEVER_NULL:
        # A column without nulls passes one of them always, and the other never.
        scope.is_empty |= isinstance(inner, IsNull) is not is_negated
        return True
    match column:
        case "topic":
            return _takes_name(scope.topic_tests, str, inner, is_negated=is_negated)
        case "partition":
            return _takes_name(scope.partition_tests, int, inner, is_negated=is_negated)
        case "offset":
            return _takes_offset(scope, found)
        case "timestamp":
            _see_time(scope, found)
    return False


def _takes_name(tests: list[Comparison], kind: type, inner: Filter, *, is_negated: bool) -> bool:
    value = getattr(inner, "value", None)
    values = value if isinstance(inner, In) else [value]
    if type(inner) not in _COMPARISONS or any(type(one) is not kind for one in values or ()):
        return False
    if isinstance(inner, StringContains | StringStartsWith | StringEndsWith) and kind is not str:
        return False
    tests.append(Comparison(type(inner), value, is_negated))
    return True


# --- offsets and times ----------------------------------------------------------------------------


def _takes_offset(scope: Scope, found: Filter) -> bool:
    match found:
        case EqualTo(_, int(value)) | EqualNullSafe(_, int(value)):
            _narrow(scope, value, value + 1)
        case GreaterThan(_, int(value)):
            _narrow(scope, value + 1, INT64_MAX)
        case GreaterThanOrEqual(_, int(value)):
            _narrow(scope, value, INT64_MAX)
        case LessThan(_, int(value)):
            _narrow(scope, 0, value)
        case LessThanOrEqual(_, int(value)):
            _narrow(scope, 0, value + 1)
        case In(_, values) if values and all(type(value) is int for value in values):
            _narrow(scope, min(values), max(values) + 1)
            return bool(len(set(values)) == max(values) - min(values) + 1)
        case _:
            return False
    return True


def _narrow(scope: Scope, start_offset: int, end_offset: int) -> None:
    scope.start_offset = max(scope.start_offset, start_offset)
    scope.end_offset = min(scope.end_offset, end_offset)


def _see_time(scope: Scope, found: Filter) -> None:
    match found:
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
    if since_ms is not None and (scope.since_ms is None or since_ms > scope.since_ms):
        scope.since_ms = since_ms


def _milliseconds(value: datetime) -> int | None:
    """A time in milliseconds, rounded down; None where it depends on a zone that is not said."""
    if value.tzinfo is None:
        return None
    return (value - _EPOCH) // timedelta(milliseconds=1)
