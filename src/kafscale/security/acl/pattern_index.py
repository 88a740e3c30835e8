"""`PatternIndex`: values by resource pattern, looked up by resource name. Pure.

A literal pattern matches its own name, `*` every name, and a prefix every name that starts with it.
The cost of a lookup depends on the number of different prefix lengths, not of prefixes.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

from kafscale.metadata.access.model import ANY_NAME, PatternType

Value = TypeVar("Value")


class PatternIndex(Generic[Value]):
    """Values by pattern."""

    __slots__ = ("_lengths", "_literals", "_prefixes")

    def __init__(self) -> None:
        self._literals: dict[str, Value] = {}
        self._prefixes: dict[str, Value] = {}
        self._lengths: Counter[int] = Counter()
        """The number of prefixes of each length."""

    def __bool__(self) -> bool:
        return bool(self._literals or self._prefixes)

    def get(self, pattern_type: PatternType, name: str) -> Value | None:
        return self._values_of(pattern_type).get(name)

    def put(self, pattern_type: PatternType, name: str, value: Value) -> None:
        """Set the value of a pattern."""
        values = self._values_of(pattern_type)
        if values is self._prefixes and name not in values:
            self._lengths[len(name)] += 1
        values[name] = value

    def drop(self, pattern_type: PatternType, name: str) -> None:
        """Remove a pattern."""
        values = self._values_of(pattern_type)
        del values[name]
        if values is self._prefixes:
            self._lengths[len(name)] -= 1
            if not self._lengths[len(name)]:
                del self._lengths[len(name)]

    def matching(self, name: str) -> Iterator[Value]:
        """The values of all patterns that match a name."""
        literals, prefixes = self._literals, self._prefixes
        if name in literals:
            yield literals[name]
        if ANY_NAME in literals and name != ANY_NAME:
            yield literals[ANY_NAME]
        for length in self._lengths:
            if length <= len(name) and (prefix := name[:length]) in prefixes:
                yield prefixes[prefix]

    def values(self) -> Iterator[Value]:
        yield from self._literals.values()
        yield from self._prefixes.values()

    def _values_of(self, pattern_type: PatternType) -> dict[str, Value]:
        return self._prefixes if pattern_type is PatternType.PREFIXED else self._literals
