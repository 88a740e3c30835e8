"""Selects the topics and partitions of a query: by name, by pattern, or explicitly.

Matching topics may appear and disappear while a stream runs, so a subscription is evaluated against
every new offset map. Pure.
"""

import re

import msgspec

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.plan.offset_bounds import format_partitions
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.text.topic_partition import TopicPartition


class Subscription(msgspec.Struct, frozen=True):
    """Exactly one attribute is set."""

    names: frozenset[str] | None = None
    pattern: str | None = None
    topic_partitions: frozenset[TopicPartition] | None = None

    @classmethod
    def to_topics(cls, text: str) -> "Subscription":
        names = frozenset(name.strip() for name in text.split(",") if name.strip())
        if not names:
            raise InvalidRequestError(f"subscribe names no topic: {text!r}")
        return cls(names=names)

    @classmethod
    def to_pattern(cls, text: str) -> "Subscription":
        try:
            re.compile(text)
        except re.error as error:
            raise InvalidRequestError(
                f"subscribePattern {text!r} is not a regular expression: {error}"
            ) from None
        if not text.strip():
            raise InvalidRequestError("subscribePattern is empty and matches no topic")
        return cls(pattern=text)

    @classmethod
    def to_partitions(cls, text: str) -> "Subscription":
        try:
            assigned = msgspec.json.decode(text, type=dict[str, list[int]])
        except msgspec.MsgspecError as error:
            raise InvalidRequestError(
                f'assign must be JSON like {{"topic": [0, 1]}}, not {text!r}: {error}'
            ) from None
        topic_partitions = frozenset(
            (topic, partition) for topic, partitions in assigned.items() for partition in partitions
        )
        if not topic_partitions or min(partition for _, partition in topic_partitions) < 0:
            raise InvalidRequestError(f"assign names no partition, or a negative one: {text!r}")
        return cls(topic_partitions=topic_partitions)

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics by name; None for a pattern."""
        if self.topic_partitions is not None:
            return frozenset(topic for topic, _ in self.topic_partitions)
        return self.names

    def matches(self, topic: str) -> bool:
        """Whether a topic is subscribed; a pattern must match the whole name."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in (self.topics or ())

    def select(self, offset_map: OffsetMap) -> dict[TopicPartition, PartitionOffsets]:
        """Return the subscribed partitions that exist."""
        partitions = offset_map.partitions
        if self.topic_partitions is not None:
            return {
                topic_partition: partitions[topic_partition]
                for topic_partition in self.topic_partitions & partitions.keys()
            }
        return {
            topic_partition: partition
            for topic_partition, partition in partitions.items()
            if self.matches(partition.topic)
        }

    def require(self, offset_map: OffsetMap) -> dict[TopicPartition, PartitionOffsets]:
        """Return the subscribed partitions; raise if one does not exist. A pattern may match none.

        Without a topic catalog, a partition without records is not visible. An assigned partition
        of an existing topic is then taken to be empty.
        """
        selected = self.select(offset_map)
        existing = {topic for topic, _ in offset_map.partitions} | offset_map.catalog.keys()
        missing = (self.topics or frozenset()) - existing
        if missing:
            raise UnknownTopicError(f"no such topic: {', '.join(sorted(missing))}")
        for topic, partition in (self.topic_partitions or frozenset()) - selected.keys():
            if topic in offset_map.catalog:
                raise UnknownTopicError(
                    f"assign: {format_partitions([(topic, partition)])} does not exist; "
                    f"{topic} has {offset_map.catalog[topic].partition_count} partitions"
                )
            selected[topic, partition] = PartitionOffsets(topic, partition, 0, 0)
        return selected
