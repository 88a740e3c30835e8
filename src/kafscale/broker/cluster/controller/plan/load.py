"""The spread of pieces over brokers: how many each has, of each topic, and in each rack.

The law: `has_room` is true of those brokers only that may get one more piece without anybody being
asked to give one away later: when all pieces are placed where there is room, no broker has two more
than another. As long as pieces are missing, somebody has room.
"""

from collections import Counter
from collections.abc import Iterable

from kafscale.broker.cluster.controller.plan.unit import NOWHERE, Piece
from kafscale.metadata.schema.model import BrokerInfo


class Spread:
    """Counts of pieces of one kind, which are kept as pieces are put and moved."""

    def __init__(self, brokers: Iterable[BrokerInfo], total: int) -> None:
        """`total` is how many pieces there are to be in the end."""
        self._racks = {broker.id: broker.rack for broker in sorted(brokers, key=_by_id)}
        self._rack_sizes = Counter(self._racks.values())
        self._counts = dict.fromkeys(self._racks, 0)
        self._rack_counts = dict.fromkeys(self._rack_sizes, 0)
        self._topics: dict[str, tuple[dict[int, int], dict[str, int]]] = {}
        self._share, self._extra = divmod(total, len(self._racks))
        """What each broker is to have, and how many are to have one more."""

    def __contains__(self, broker_id: int) -> bool:
        return broker_id in self._racks

    def count(self, broker_id: int) -> int:
        return self._counts[broker_id]

    def count_of_topic(self, topic: str, broker_id: int) -> int:
        return self._of_topic(topic)[0][broker_id]

    @property
    def is_level(self) -> bool:
        """Whether no broker has two more than another."""
        return max(self._counts.values()) - min(self._counts.values()) <= 1

    @property
    def is_overfull(self) -> bool:
        """Whether somebody has more than it will keep once all have their share."""
        return self._extra < 0 or max(self._counts.values()) > self._share + 1

    def has_room(self, broker_id: int) -> bool:
        count = self._counts[broker_id]
        return count < self._share or (count == self._share and self._extra > 0)

    def with_room(self) -> list[int]:
        limit = self._share + (1 if self._extra > 0 else 0)
        return [broker_id for broker_id, count in self._counts.items() if count < limit]

    def best(self, topic: str, broker_ids: Iterable[int]) -> int:
        """Who of these is to get a piece: its topic is spread first, then the racks, then all."""
        racks, sizes, counts, rack_counts = (
            self._racks,
            self._rack_sizes,
            self._counts,
            self._rack_counts,
        )
        of_topic, rack_of_topic = self._of_topic(topic)

        def rank(broker_id: int) -> tuple[int, float, float, int, int]:
            rack = racks[broker_id]
            return (
                of_topic[broker_id],
                rack_of_topic[rack] / sizes[rack],
                rack_counts[rack] / sizes[rack],
                counts[broker_id],
                broker_id,
            )

        return min(broker_ids, key=rank)

    def extremes(self) -> tuple[int, int]:
        """The broker that has the most, and the one that has the fewest."""

        def rank(broker_id: int) -> tuple[int, float]:
            rack = self._racks[broker_id]
            return self._counts[broker_id], self._rack_counts[rack] / self._rack_sizes[rack]

        return max(self._racks, key=rank), min(self._racks, key=rank)

    def everybody(self) -> Iterable[int]:
        return self._racks.keys()

    def put(self, piece: Piece, broker_id: int) -> None:
        """Let the piece be meant for this broker, and for none that it was meant for before."""
        if piece.destination != NOWHERE:
            self._add(piece, -1)
        piece.destination = broker_id
        self._add(piece, 1)

    def _add(self, piece: Piece, one: int) -> None:
        broker_id = piece.destination
        rack = self._racks[broker_id]
        of_topic, rack_of_topic = self._of_topic(piece.topic)
        of_topic[broker_id] += one
        rack_of_topic[rack] += one
        self._rack_counts[rack] += one
        before = self._counts[broker_id]
        self._counts[broker_id] = before + one
        self._extra -= (before + one > self._share) - (before > self._share)

    def _of_topic(self, topic: str) -> tuple[dict[int, int], dict[str, int]]:
        """How many of a topic each broker has, and each rack."""
        found = self._topics.get(topic)
        if found is None:
            found = dict.fromkeys(self._racks, 0), dict.fromkeys(self._rack_sizes, 0)
            self._topics[topic] = found
        return found


def _by_id(broker: BrokerInfo) -> int:
    return broker.id
