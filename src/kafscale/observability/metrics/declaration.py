"""The declaration of a metric: its documentation, and how a scrape reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from kafscale.observability.metrics.counters import Counters
from kafscale.observability.metrics.text_format import Series

Source = TypeVar("Source")
"""Holds the numbers of a process."""


@dataclass(frozen=True)
class Metric(Generic[Source]):
    """One metric: its documentation, and how a scrape reads it."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str
    read: Callable[[Source], Series]


BrokerMetric: TypeAlias = Metric[Counters]
"""A metric of brokers."""


def gauge(name: str, meaning: str, read: Callable[[Counters], float]) -> BrokerMetric:
    return BrokerMetric(name, "gauge", (), meaning, lambda traffic: (((), read(traffic)),))


def counter(name: str, meaning: str, read: Callable[[Counters], float]) -> BrokerMetric:
    return BrokerMetric(name, "counter", (), meaning, lambda traffic: (((), read(traffic)),))
