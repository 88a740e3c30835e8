r"""The declaration of metrics, and Prometheus' text format, version 0.0.4.

>>> print(render("kafscale_x", "gauge", "Why.", ("topic",), [(("a",), 2)]), end="")
# HELP kafscale_x Why.
# TYPE kafscale_x gauge
kafscale_x{topic="a"} 2

The Prometheus client library is not used, because it is ten times slower: with a few thousand
partitions a scrape would block the event loop for 200 ms.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeAlias, TypeVar

from kafscale.observability.metrics.counters import Counters
from kafscale.observability.metrics.histogram import Histogram

Series = Iterable[tuple[tuple[str, ...], float | Histogram]]
"""Label values with the number or histogram."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

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

    def render(self, source: Source) -> str:
        """The metric in Prometheus' text format."""
        return render(self.name, self.type, self.meaning, self.labels, self.read(source))


BrokerMetric: TypeAlias = Metric[Counters]
"""A metric of brokers."""


def gauge(name: str, meaning: str, read: Callable[[Counters], float]) -> BrokerMetric:
    return BrokerMetric(name, "gauge", (), meaning, lambda counters: (((), read(counters)),))


def counter(name: str, meaning: str, read: Callable[[Counters], float]) -> BrokerMetric:
    return BrokerMetric(name, "counter", (), meaning, lambda counters: (((), read(counters)),))


def render(name: str, kind: str, meaning: str, labels: tuple[str, ...], series: Series) -> str:
    explanation = meaning.replace("\\", r"\\").replace("\n", r"\n")
    lines = _distributions if kind == "histogram" else _numbers
    head = f"# HELP {name} {explanation}\n# TYPE {name} {kind}\n"
    return head + "".join(lines(name, labels, series))


def _numbers(name: str, labels: tuple[str, ...], series: Series) -> Iterator[str]:
    template = name + _template(labels) + " %s\n"
    for values, value in series:
        yield template % (*map(_escaped, values), value)


def _distributions(name: str, labels: tuple[str, ...], series: Series) -> Iterator[str]:
    bucket = name + "_bucket" + _template((*labels, "le")) + " %d\n"
    total = name + "_sum" + _template(labels) + " %s\n"
    count = name + "_count" + _template(labels) + " %d\n"
    for values, value in series:
        assert isinstance(value, Histogram)
        escaped = tuple(map(_escaped, values))
        counts = list(accumulate(value.counts))
        for bound, below in zip((*value.bounds, "+Inf"), counts, strict=True):
            yield bucket % (*escaped, bound, below)
        yield total % (*escaped, value.sum)
        yield count % (*escaped, counts[-1])


def _template(labels: tuple[str, ...]) -> str:
    return "{" + ",".join(f'{label}="%s"' for label in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    if value.isalnum():  # The common case.
        return value
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
