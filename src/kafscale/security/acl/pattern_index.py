"""`PatternIndex`: things kept by the names that they are for, found again by one name. Pure.

The law: a literal pattern is for its own name, and `*` for every name; a prefix is for every name
that begins with it, itself included. Finding takes as long as there are different lengths of
prefixes, however many prefixes there are.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Generic, TypeVar

from kafscale.metadata.access.model import ANY_NAME, PatternType

Value = TypeVar("Value")


class PatternIndex(Generic[Value]):
    """Values, by pattern."""

    __slots__ = ("_lengths", "_literals", "_prefixes")

    def __init__(self) -> None:
        self._literals: dict[str, Value] = {}
        self._prefixes: dict[str, Value] = {}
        self._lengths: Counter[int] = Counter()
        """How many prefixes there are of each length."""

    def __bool__(self) -> bool:
        return bool(self._literals or self._prefixes)

    def get(self, pattern_type: PatternType, name: str) -> Value | None:
        return self._kept(pattern_type).get(name)

    def put(self, pattern_type: PatternType, name: str, value: Value) -> None:
        """Keep a value under a pattern, instead of the one before."""
        kept = self._kept(pattern_type)
        if kept is self._prefixes and name not in kept:
            self._lengths[len(name)] += 1
        kept[name] = value

    def drop(self, pattern_type: PatternType, name: str) -> None:
        """Forget a pattern."""
        kept = self._kept(pattern_type)
        del kept[name]
        if kept is self._prefixes:
            self._lengths[len(name)] -= 1
            if not self._lengths[len(name)]:
                del self._lengths[len(name)]

    def matching(self, name: str) -> Iterator[Value]:
        """What is kept for a name."""
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

    def _kept(self, pattern_type: PatternType) -> dict[str, Value]:
        return self._prefixes if pattern_type is PatternType.PREFIXED else self._literals
