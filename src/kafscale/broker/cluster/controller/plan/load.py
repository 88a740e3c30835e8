"""How many assignment units each broker has, of each topic, and in each rack.

Invariant: `is_below_target` is true only for brokers that may get one more unit without having to
give one away later: if all units are placed on such brokers, no broker has two more than another.
While units are unplaced, at least one broker is below its target. Units that were requested for
their brokers count like others, but cannot be moved: a broker may have too many of them, and then
gets no others.
"""

from collections import Counter
from collections.abc import Iterable

from kafscale.broker.cluster.controller.plan.units import AssignmentUnit
from kafscale.metadata.schema.model import NO_BROKER, BrokerInfo


class LoadCounts:
    """Counts of units of one kind, updated as units are assigned."""

    def __init__(self, brokers: Iterable[BrokerInfo], total: int) -> None:
        """`total` is the number of units to be assigned in the end."""
        self._racks = {
            broker.id: broker.rack for broker in sorted(brokers, key=lambda broker: broker.id)
        }
        self._rack_sizes = Counter(self._racks.values())
        self._counts = dict.fromkeys(self._racks, 0)
        self._movable_counts = dict.fromkeys(self._racks, 0)
        self._rack_counts = dict.fromkeys(self._rack_sizes, 0)
        self._topics: dict[str, tuple[dict[int, int], dict[str, int]]] = {}
        self._target_count, self._extra_count = divmod(total, len(self._racks))
        """What each broker should have, and how many brokers should have one more."""

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._racks

    def count(self, broker_id: int) -> int:
        return self._counts[broker_id]

    def count_of_topic(self, topic: str, broker_id: int) -> int:
        return self._topic_counts(topic)[0][broker_id]

    @property
    def is_balanced(self) -> bool:
        """Whether no broker that has movable units has two units more than another."""
        most = max((self._counts[broker_id] for broker_id in self._givers()), default=0)
        return most - min(self._counts.values()) <= 1

    @property
    def is_overloaded(self) -> bool:
        """Whether a broker has more than it will keep once all have their share."""
        limit = self._target_count + (0 if self._extra_count < 0 else 1)
        return any(self._counts[broker_id] > limit for broker_id in self._givers())

    def is_below_target(self, broker_id: int) -> bool:
        count = self._counts[broker_id]
        return count < self._target_count or (count == self._target_count and self._extra_count > 0)

    def below_target(self) -> list[int]:
        limit = self._target_count + (1 if self._extra_count > 0 else 0)
        return [broker_id for broker_id, count in self._counts.items() if count < limit]

    def choose(self, topic: str, broker_ids: Iterable[int]) -> int:
        """Choose a broker for a unit: spread its topic first, then the racks, then the total."""
        racks, sizes, counts, rack_counts = (
            self._racks,
            self._rack_sizes,
            self._counts,
            self._rack_counts,
        )
        topic_counts, topic_rack_counts = self._topic_counts(topic)

        def rank(broker_id: int) -> tuple[int, float, float, int, int]:
            rack = racks[broker_id]
            return (
                topic_counts[broker_id],
                topic_rack_counts[rack] / sizes[rack],
                rack_counts[rack] / sizes[rack],
                counts[broker_id],
                broker_id,
            )

        return min(broker_ids, key=rank)

    def extremes(self) -> tuple[int, int]:
        """The broker with movable units that has the most units, and the one with the fewest."""

        def rank(broker_id: int) -> tuple[int, float]:
            rack = self._racks[broker_id]
            return self._counts[broker_id], self._rack_counts[rack] / self._rack_sizes[rack]

        return max(self._givers(), key=rank), min(self._racks, key=rank)

    def _givers(self) -> list[int]:
        """The brokers that have units which may be moved to others."""
        return [broker_id for broker_id, count in self._movable_counts.items() if count]

    def all_brokers(self) -> Iterable[int]:
        return self._racks.keys()

    def assign(self, unit: AssignmentUnit, broker_id: int) -> None:
        """Set the target of a unit, in place of its former target."""
        if unit.target != NO_BROKER:
            self._add(unit, -1)
        unit.target = broker_id
        self._add(unit, 1)

    def _add(self, unit: AssignmentUnit, one: int) -> None:
        broker_id = unit.target
        rack = self._racks[broker_id]
        topic_counts, topic_rack_counts = self._topic_counts(unit.topic)
        topic_counts[broker_id] += one
        topic_rack_counts[rack] += one
        self._rack_counts[rack] += one
        if unit.preferred == NO_BROKER:
            self._movable_counts[broker_id] += one
        before = self._counts[broker_id]
        self._counts[broker_id] = before + one
        self._extra_count -= (before + one > self._target_count) - (before > self._target_count)

    def _topic_counts(self, topic: str) -> tuple[dict[int, int], dict[str, int]]:
        """The counts of a topic by broker, and by rack."""
        counts_of_topic = self._topics.get(topic)
        if counts_of_topic is None:
            counts_of_topic = dict.fromkeys(self._racks, 0), dict.fromkeys(self._rack_sizes, 0)
            self._topics[topic] = counts_of_topic
        return counts_of_topic
