"""All series of all processes, with their labels.

Generated from the metric declarations; dashboards and alerts are checked against it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafscale.observability.metrics.broker import BROKER_METRICS
from kafscale.observability.metrics.declaration import Metric
from kafscale.observability.metrics.jobs import PIPELINE_METRICS
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
