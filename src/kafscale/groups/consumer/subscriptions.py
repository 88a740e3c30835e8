"""`Catalogue`: the topics that there are now, and what members mean by their wishes.

It never changes: when topics do, a group gets a new one. Regular expressions are RE2's, as in
Kafka, so that a member cannot stop the coordinator with one that takes forever; they have to match
the whole name.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Final, Protocol

import re2  # type: ignore[import-untyped]

from kafscale.errors import InvalidRegexError
from kafscale.groups.consumer.member_metadata import Wish
from kafscale.groups.consumer.partition_sets import frozen
from kafscale.groups.model import Partitions, TopicInfo

WISHES_MAX: Final = 256
"""How many different wishes are remembered with what they come to."""


class Pattern(Protocol):
    """A compiled regular expression."""

    def fullmatch(self, text: str) -> object | None: ...


class Catalogue:
    """All topics by name."""

    def __init__(self, topics: Mapping[str, TopicInfo]) -> None:
        self._topics = topics
        self.wanted = lru_cache(maxsize=WISHES_MAX)(self._wanted)
        """The ids of the topics that a wish comes to, as far as they exist."""
        self.matching = lru_cache(maxsize=WISHES_MAX)(self._matching)
        """The names of the topics that a regular expression matches."""

    def partition_counts(self, wishes: Iterable[Wish]) -> dict[bytes, int]:
        """All topics that somebody wants, by id."""
        ids = frozenset[bytes]().union(*map(self.wanted, set(wishes)))
        return {topic: self._by_id[topic].partition_count for topic in ids}

    def by_name(self, partitions: Partitions) -> dict[str, list[int]]:
        """Partitions under the names of their topics; those of topics that are gone drop out."""
        known = self._by_id
        named = {known[id_].name: numbers for id_, numbers in partitions.items() if id_ in known}
        return {name: sorted(named[name]) for name in sorted(named)}

    def by_id(self, partitions: Iterable[tuple[str, Iterable[int]]]) -> Partitions:
        """Partitions under the ids of their topics; those of topics that are gone drop out."""
        known = self._topics
        return frozen({known[name].id: numbers for name, numbers in partitions if name in known})

    @cached_property
    def _by_id(self) -> dict[bytes, TopicInfo]:
        return {topic.id: topic for topic in self._topics.values()}

    def _wanted(self, wish: Wish) -> frozenset[bytes]:
        names, regex = wish
        topics = self._topics
        ids = {topics[name].id for name in names if name in topics}
        if regex:
            ids.update(topics[name].id for name in self.matching(regex))
        return frozenset(ids)

    def _matching(self, regex: str) -> frozenset[str]:
        return frozenset(filter(compiled(regex).fullmatch, self._topics))


def compiled(regex: str) -> Pattern:
    """The pattern, or an `InvalidRegexError`; RE2 remembers those that were used of late."""
    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(regex, options)
    except re2.error as error:
        (reason,) = error.args
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise InvalidRegexError(f"{regex!r} is no regular expression: {text}") from error
    return pattern


def is_wanted(wish: Wish, topic: str) -> bool:
    """Whether a topic is among those that a wish means."""
    names, regex = wish
    return topic in names or (bool(regex) and compiled(regex).fullmatch(topic) is not None)
