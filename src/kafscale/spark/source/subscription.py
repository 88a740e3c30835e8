"""Which topics and partitions a query reads: by name, by a pattern, or one by one.

Topics that match may come and go while a stream goes on, so a subscription is asked anew with every
map of the log. Pure: what is there is in the map.
"""

import re

import msgspec

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.plan.offset_map import LogMap, PartitionMap, Place
from kafscale.spark.plan.offsets import show


class Subscription(msgspec.Struct, frozen=True):
    """Exactly one of the three."""

    names: frozenset[str] | None = None
    pattern: str | None = None
    places: frozenset[Place] | None = None

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
        places = frozenset(
            (topic, partition) for topic, partitions in assigned.items() for partition in partitions
        )
        if not places or min(partition for _, partition in places) < 0:
            raise InvalidRequestError(f"assign names no partition, or one below 0: {text!r}")
        return cls(places=places)

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics by name; None if only a look at all of them can tell."""
        if self.places is not None:
            return frozenset(topic for topic, _ in self.places)
        return self.names

    def wants(self, topic: str) -> bool:
        """Whether a topic may be read from; a pattern has to match the whole of its name."""
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in (self.topics or ())

    def of(self, log: LogMap) -> dict[Place, PartitionMap]:
        """The partitions to read, as far as they are there."""
        if self.places is not None:
            return {place: log.partitions[place] for place in self.places & log.partitions.keys()}
        return {place: found for place, found in log.partitions.items() if self.wants(place[0])}

    def require(self, log: LogMap) -> dict[Place, PartitionMap]:
        """The partitions to read, all of which have to be there; a pattern may match none.

        Where brokers publish no catalog, a partition without records cannot be seen. One that is
        assigned is taken for such, if its topic is there.
        """
        found = self.of(log)
        there = {topic for topic, _ in log.partitions} | log.known.keys()
        missing = (self.topics or frozenset()) - there
        if missing:
            raise UnknownTopicError(f"no such topic: {', '.join(sorted(missing))}")
        for topic, partition in (self.places or frozenset()) - found.keys():
            if topic in log.known:
                raise UnknownTopicError(
                    f"assign: {show([(topic, partition)])} is not there; "
                    f"{topic} has {log.known[topic].partitions} partitions"
                )
            found[topic, partition] = PartitionMap(topic, partition, 0, 0)
        return found
