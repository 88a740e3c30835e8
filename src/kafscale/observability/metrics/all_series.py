"""Every series that any process of Kafscale shows, with its labels.

Dashboards and alerts are judged by it: what they ask for has to stand here. It is made from the
declarations, so that it cannot say anything else than a scrape.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafscale.observability.metrics.broker import BROKER_METRICS
from kafscale.observability.metrics.declaration import Metric
from kafscale.observability.metrics.jobs import PIPELINE_METRICS
from kafscale.observability.metrics.operator import OPERATOR_METRICS

METRICS: Final[tuple[Metric[Any], ...]] = (*BROKER_METRICS, *OPERATOR_METRICS, *PIPELINE_METRICS)

TARGET_LABELS: Final = frozenset({"cluster", "namespace", "pod", "service"})
"""Labels that every series has from where it was read: ServiceMonitors see to that."""

OF_PROMETHEUS: Final[Mapping[str, frozenset[str]]] = {"up": frozenset()}
"""Series that Prometheus itself makes of every target."""


def _series() -> Iterator[tuple[str, frozenset[str]]]:
    yield from OF_PROMETHEUS.items()
    for declared in METRICS:
        labels = frozenset(declared.labels)
        if declared.type == "histogram":
            yield f"{declared.name}_bucket", labels | {"le"}
            yield f"{declared.name}_count", labels
            yield f"{declared.name}_sum", labels
        else:
            yield declared.name, labels


SERIES: Final[Mapping[str, frozenset[str]]] = dict(_series())
"""The labels that each series has by itself."""
