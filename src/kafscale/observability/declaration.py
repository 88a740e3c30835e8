"""How a metric is declared: what the documentation says of it, and where a scrape finds it."""

from collections.abc import Callable
from dataclasses import dataclass

from kafscale.observability.exposition import Series
from kafscale.observability.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Declaration:
    """One metric: what the documentation says about it, and where a scrape finds it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str
    read: Callable[[Traffic], Series]


def gauge(name: str, meaning: str, read: Callable[[Traffic], float]) -> Declaration:
    return Declaration(name, "gauge", (), meaning, lambda traffic: (((), read(traffic)),))


def counter(name: str, meaning: str, read: Callable[[Traffic], float]) -> Declaration:
    return Declaration(name, "counter", (), meaning, lambda traffic: (((), read(traffic)),))
