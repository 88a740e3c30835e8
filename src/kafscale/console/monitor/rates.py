"""How fast things go, of what brokers have counted at two looks. Pure.

The laws: growth is taken broker by broker and partition by partition, because a counter begins anew
when a broker does, and when a partition moves. What a broker has counted before it was first seen
does not count; and looks that follow each other closely are no ground for a rate.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from kafscale.admin.cluster.figures import OTHER, Figures, Place
from kafscale.admin.cluster.snapshot import ClusterLook

SECONDS_MIN: Final = 1.0
SECONDS_MAX: Final = 120.0
"""After longer than this without a look, rates begin anew."""

Key = TypeVar("Key")


class TopicRate(msgspec.Struct, frozen=True, gc=False):
    """In bytes per second."""

    produce: float = 0.0
    fetch: float = 0.0


class BrokerRate(msgspec.Struct, frozen=True, gc=False):
    """Per second."""

    produce_bytes: float
    fetch_bytes: float
    produce_requests: float
    fetch_requests: float


class Rates(msgspec.Struct, frozen=True):
    """What goes on in a cluster; only what moves is in here."""

    brokers: dict[int, BrokerRate] = {}
    topics: dict[str, TopicRate] = {}

    def total(self, name: str) -> float | None:
        """Over all brokers; None where there is none to be measured."""
        if not self.brokers:
            return None
        return float(sum(getattr(each, name) for each in self.brokers.values()))


class Counted(msgspec.Struct, frozen=True):
    """What a broker had counted at a look."""

    epoch: int
    figures: Figures


class Pace:
    """The rates at each look, against what was counted at the one before."""

    def __init__(self) -> None:
        self.rates = Rates()
        self._at_ms: int | None = None
        self._counted: dict[int, Counted] = {}

    def take(self, look: ClusterLook) -> Rates:
        seconds = 0.0 if self._at_ms is None else (look.at_ms - self._at_ms) / 1000
        if self._at_ms is not None and 0 <= seconds < SECONDS_MIN:
            return self.rates
        counted = {
            each.id: Counted(each.epoch, each.figures) for each in look.brokers if each.figures
        }
        comparable = self._counted if 0 < seconds <= SECONDS_MAX else {}
        self.rates = _rates(comparable, counted, seconds)
        self._at_ms = look.at_ms
        self._counted = counted
        return self.rates


def growth(before: Mapping[Key, int], after: Mapping[Key, int]) -> dict[Key, int]:
    """What counters have grown by; one that went back has begun anew, from nothing.

    >>> growth({"a": 5, "b": 9}, {"a": 7, "b": 2, "c": 1, "d": 0})
    {'a': 2, 'b': 2, 'c': 1}
    """
    grown = {}
    for key, value in after.items():
        past = before.get(key, 0)
        more = value - past if value >= past else value
        if more:
            grown[key] = more
    return grown


def _rates(before: Mapping[int, Counted], after: Mapping[int, Counted], seconds: float) -> Rates:
    brokers: dict[int, BrokerRate] = {}
    produced: dict[str, int] = {}
    fetched: dict[str, int] = {}
    for broker_id, now in after.items():
        if broker_id not in before:
            continue
        then = before[broker_id].figures if before[broker_id].epoch == now.epoch else None
        totals = {}
        for name, by_topic in (("produce_bytes", produced), ("fetch_bytes", fetched)):
            past: Mapping[Place, int] = getattr(then, name) if then else {}
            grown = growth(past, getattr(now.figures, name))
            totals[name] = sum(grown.values()) / seconds
            for place, more in grown.items():
                if place != OTHER:
                    by_topic[place[0]] = by_topic.get(place[0], 0) + more
        requests = growth(_requests(then) if then else {}, _requests(now.figures))
        brokers[broker_id] = BrokerRate(
            **totals, **{name: requests.get(name, 0) / seconds for name in _REQUESTS}
        )
    topics = {
        name: TopicRate(produced.get(name, 0) / seconds, fetched.get(name, 0) / seconds)
        for name in {*produced, *fetched}
    }
    return Rates(brokers, topics)


_REQUESTS: Final = ("produce_requests", "fetch_requests")


def _requests(figures: Figures) -> dict[str, int]:
    return {name: getattr(figures, name) for name in _REQUESTS}
