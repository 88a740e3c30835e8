"""Which topics and partitions a query reads: by name, by a pattern, or one by one.

Topics that match may come and go while a stream goes on, so a subscription is asked anew with every
map of the log. Pure: what is there is in the map.
"""

import re

import msgspec

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets, TopicPartition
from kafscale.spark.plan.offsets import show


class Subscription(msgspec.Struct, frozen=True):
    """Exactly one of the three."""

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
                f"subscribePattern {text!r} is no regular expression: {error}"
            ) from None
        if not text.strip():
            raise InvalidRequestError("subscribePattern is empty: no topic would match it")
        return cls(pattern=text)

    @classmethod
    def to_partitions(cls, text: str) -> "Subscription":
        try:
            assigned = msgspec.json.decode(text, type=dict[str, list[int]])
        except msgspec.MsgspecError as error:
            raise InvalidRequestError(
                f'assign is like {{"topic": [0, 1]}}, not {text!r}: {error}'
            ) from None
        topic_partitions = frozenset(
            (topic, partition) for topic, partitions in assigned.items() for partition in partitions
        )
        if not topic_partitions or min(partition for _, partition in topic_partitions) < 0:
            raise InvalidRequestError(f"assign names no partition, or one below 0: {text!r}")
        return cls(topic_partitions=topic_partitions)

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics by name; None if only a look at all of them can tell."""
        if self.topic_partitions is not None:
            return frozenset(topic for topic, _ in self.topic_partitions)
        return self.names

    def matches(self, topic: str) -> bool:
        """Whether a topic may be read from; a pattern has to match the whole of its name."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in (self.topics or ())

    def select(self, log: OffsetMap) -> dict[TopicPartition, PartitionOffsets]:
        """The partitions to read, as far as they are there."""
        if self.topic_partitions is not None:
            return {
                topic_partition: log.partitions[topic_partition]
                for topic_partition in self.topic_partitions & log.partitions.keys()
            }
        return {
            topic_partition: found
            for topic_partition, found in log.partitions.items()
            if self.matches(topic_partition[0])
        }

    def require(self, log: OffsetMap) -> dict[TopicPartition, PartitionOffsets]:
        """The partitions to read, all of which have to be there; a pattern may match none.

        Where brokers publish no catalog, a partition without records cannot be seen. One that is
        assigned is taken for such, if its topic is there.
        """
        found = self.select(log)
        there = {topic for topic, _ in log.partitions} | log.catalog.keys()
        missing = (self.topics or frozenset()) - there
        if missing:
            raise UnknownTopicError(f"no such topic: {', '.join(sorted(missing))}")
        for topic, partition in (self.topic_partitions or frozenset()) - found.keys():
            if topic in log.catalog:
                raise UnknownTopicError(
                    f"assign: {show([(topic, partition)])} is not there; "
                    f"{topic} has {log.catalog[topic].partitions} partitions"
                )
            found[topic, partition] = PartitionOffsets(topic, partition, 0, 0)
        return found
