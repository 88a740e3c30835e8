"""`TopicSubscriptions`: resolves members' subscriptions to the topics that exist.

It is immutable: when topics change, a group gets a new one. Regular expressions are RE2's, as in
Kafka, so that no expression can block the coordinator; they have to match the whole name.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Final, Protocol

import re2  # type: ignore[import-untyped]

from kafscale.errors import InvalidRegexError
from kafscale.groups.consumer.member_metadata import SubscribedTopics
from kafscale.groups.consumer.partition_sets import frozen
from kafscale.groups.model import Partitions, TopicInfo

CACHED_SUBSCRIPTIONS_MAX: Final = 256
"""How many resolved subscriptions are cached."""


class Pattern(Protocol):
    """A compiled regular expression."""

    def fullmatch(self, text: str) -> object | None: ...


class TopicSubscriptions:
    """All topics by name."""

    def __init__(self, topics: Mapping[str, TopicInfo]) -> None:
        self._topics = topics
        self.resolve = lru_cache(maxsize=CACHED_SUBSCRIPTIONS_MAX)(self._resolve)
        """The ids of existing topics of a subscription."""
        self.matching = lru_cache(maxsize=CACHED_SUBSCRIPTIONS_MAX)(self._matching)
        """The names of topics that a regex matches."""

    def partition_counts(self, subscriptions: Iterable[SubscribedTopics]) -> dict[bytes, int]:
        """The partition counts of all subscribed topics, by id."""
        ids = frozenset[bytes]().union(*map(self.resolve, set(subscriptions)))
        return {topic: self._by_id[topic].partition_count for topic in ids}

    def by_name(self, partitions: Partitions) -> dict[str, list[int]]:
        """Partitions by topic name, without deleted topics."""
        known = self._by_id
        named = {known[id_].name: numbers for id_, numbers in partitions.items() if id_ in known}
        return {name: sorted(named[name]) for name in sorted(named)}

    def by_id(self, partitions: Iterable[tuple[str, Iterable[int]]]) -> Partitions:
        """Partitions by topic id, without deleted topics."""
        known = self._topics
        return frozen({known[name].id: numbers for name, numbers in partitions if name in known})

    @cached_property
    def _by_id(self) -> dict[bytes, TopicInfo]:
        return {topic.id: topic for topic in self._topics.values()}

    def _resolve(self, subscription: SubscribedTopics) -> frozenset[bytes]:
        names, regex = subscription
        topics = self._topics
        ids = {topics[name].id for name in names if name in topics}
        if regex:
            ids.update(topics[name].id for name in self.matching(regex))
        return frozenset(ids)

    def _matching(self, regex: str) -> frozenset[str]:
        return frozenset(filter(compiled(regex).fullmatch, self._topics))


def compiled(regex: str) -> Pattern:
    """Compile a regex, or raise `InvalidRegexError`; RE2 caches recent ones."""
    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(regex, options)
    except re2.error as error:
        (reason,) = error.args
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise InvalidRegexError(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {text}."
        ) from error
    return pattern


def is_subscribed(subscription: SubscribedTopics, topic: str) -> bool:
    """Whether a subscription includes a topic."""
    names, regex = subscription
    return topic in names or (bool(regex) and compiled(regex).fullmatch(topic) is not None)
