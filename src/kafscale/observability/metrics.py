"""Every metric of Kafscale, declared once.

The law: a metric is declared here and emitted somewhere; what is documented is what a scrape shows,
because `docs/metrics.md` is made from these declarations. A metric comes into this file together
with the code that moves it. Serving `/metrics` over HTTP is left to the applications.
"""

from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.metrics import MetricWrapperBase

import kafscale

Metric = TypeVar("Metric", bound=MetricWrapperBase)


@dataclass(frozen=True)
class Declaration:
    """What the documentation says about one metric."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str


class Metrics:
    """The metrics of one process, on a registry of their own, so that tests share nothing."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.declarations: list[Declaration] = []

        self.build_info = self._declare(
            Gauge,
            "kafscale_build_info",
            "Always 1; its label tells which version of Kafscale is running.",
            labels=("version",),
        )
        self.build_info.labels(version=kafscale.__version__).set(1)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format: what `/metrics` answers."""
        return generate_latest(self.registry)

    def _declare(
        self, kind: type[Metric], name: str, meaning: str, labels: tuple[str, ...] = ()
    ) -> Metric:
        self.declarations.append(Declaration(name, kind.__name__.lower(), labels, meaning))
        return kind(name, meaning, labels, registry=self.registry)
