"""Checks PromQL expressions: do their series and labels exist, and which labels remain."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafscale.observability.metrics.broker import BROKER_METRICS
from kafscale.observability.metrics.jobs import PIPELINE_METRICS
from kafscale.observability.metrics.metric import Metric
from kafscale.observability.metrics.operator import OPERATOR_METRICS

METRICS: Final[tuple[Metric[Any], ...]] = (*BROKER_METRICS, *OPERATOR_METRICS, *PIPELINE_METRICS)

TARGET_LABELS: Final = frozenset({"cluster", "namespace", "pod", "service"})
"""Labels that every series gets from its scrape target, by ServiceMonitors."""

PROMETHEUS_SERIES: Final[Mapping[str, frozenset[str]]] = {"up": frozenset()}
"""Series that Prometheus adds for every target."""


def _series() -> Iterator[tuple[str, frozenset[str]]]:
    yield from PROMETHEUS_SERIES.items()
    for declared in METRICS:
        labels = frozenset(declared.labels)
        if declared.type == "histogram":
            yield f"{declared.name}_bucket", labels | {"le"}
            yield f"{declared.name}_count", labels
            yield f"{declared.name}_sum", labels
        else:
            yield declared.name, labels


SERIES: Final[Mapping[str, frozenset[str]]] = dict(_series())
"""The labels of each series."""

_SELECTOR = re.compile(r"\b(kafscale_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\bby \(([^)]*)\)")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")


@dataclass(frozen=True)
class Selector:
    """A selector in an expression."""

    name: str
    labels: frozenset[str]
    """The labels of its matchers."""


def selectors(expression: str) -> Iterator[Selector]:
    """Return all selectors in an expression.

    >>> list(selectors('sum by (le) (up{job="a"})'))
    [Selector(name='up', labels=frozenset({'job'}))]
    """
    for name, matchers in _SELECTOR.findall(expression):
        yield Selector(name, frozenset(_MATCHER.findall(matchers)))


def groupings(expression: str) -> list[frozenset[str]]:
    """Return the labels of each `by`."""
    matches = _GROUPING.findall(expression)
    return [frozenset(label.strip() for label in labels.split(",")) for labels in matches]


def problems(expression: str) -> list[str]:
    """Return the series and labels of an expression that do not exist."""
    problems_found: list[str] = []
    known: set[str] = set()
    for each in selectors(expression):
        if each.name not in SERIES:
            problems_found.append(f"there is no series {each.name}")
            continue
        known |= SERIES[each.name] | TARGET_LABELS
        unknown = each.labels - SERIES[each.name] - TARGET_LABELS
        problems_found += [f"{each.name} has no label {label}" for label in sorted(unknown)]
    for labels in groupings(expression):
        problems_found += [
            f"no series here has a label {label}" for label in sorted(labels - known)
        ]
    return problems_found


def remaining_labels(expression: str) -> frozenset[str]:
    """Return the labels that the result of an expression always has."""
    if grouped := groupings(expression):
        return frozenset.intersection(*grouped) - {"le"}
    if re.match(r"(absent|avg|max|min|sum)\(", expression):
        return frozenset()
    return (
        frozenset.intersection(*(SERIES[each.name] for each in selectors(expression)))
        | TARGET_LABELS
    )
