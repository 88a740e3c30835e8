"""How a metric is declared: what the documentation says of it, and where a scrape finds it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from kafscale.observability.metrics.counters import Counters
from kafscale.observability.metrics.text_format import Series

Figures = TypeVar("Figures")
"""Where a process keeps its numbers."""


@dataclass(frozen=True)
class Metric(Generic[Figures]):
    """One metric: what the documentation says about it, and where a scrape finds it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str
    read: Callable[[Figures], Series]


BrokerMetric: TypeAlias = Metric[Counters]
"""A metric of brokers."""


def gauge(name: str, meaning: str, read: Callable[[Counters], float]) -> BrokerMetric:
    return BrokerMetric(name, "gauge", (), meaning, lambda traffic: (((), read(traffic)),))


def counter(name: str, meaning: str, read: Callable[[Counters], float]) -> BrokerMetric:
    return BrokerMetric(name, "counter", (), meaning, lambda traffic: (((), read(traffic)),))
