"""Set operations on `Partitions`.

Invariant: as in every `Partitions`, no topic of a result has an empty set.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kafscale.groups.model import Partitions

NOTHING: Final = frozenset[int]()


def frozen(partitions: Mapping[bytes, Iterable[int]]) -> Partitions:
    """Any mapping of topics to partitions as `Partitions`."""
    sets = {topic: frozenset(numbers) for topic, numbers in partitions.items()}
    return {topic: numbers for topic, numbers in sets.items() if numbers}


def intersection(one: Partitions, other: Partitions) -> Partitions:
    return frozen({topic: one[topic] & other[topic] for topic in one.keys() & other.keys()})


def difference(one: Partitions, other: Partitions) -> Partitions:
    return frozen({topic: numbers - other.get(topic, NOTHING) for topic, numbers in one.items()})


def union(one: Partitions, other: Partitions) -> Partitions:
    topics = one.keys() | other.keys()
    return {topic: one.get(topic, NOTHING) | other.get(topic, NOTHING) for topic in topics}


def is_overlapping(one: Partitions, other: Partitions) -> bool:
    return any(not numbers.isdisjoint(other.get(topic, NOTHING)) for topic, numbers in one.items())


def is_within(part: Partitions, whole: Partitions) -> bool:
    return all(numbers <= whole.get(topic, NOTHING) for topic, numbers in part.items())
