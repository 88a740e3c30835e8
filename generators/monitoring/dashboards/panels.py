"""The model of a dashboard: queries, panels, rows and variables.

A panel has a description, a unit and thresholds. A query that may be empty in a healthy system is
marked, and a live test checks that all others return data. `rendering` converts the model to the
JSON of Grafana.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from generators.monitoring import promql

COLUMNS: Final = 24
"""The width of a Grafana dashboard in grid columns."""


class PanelType(StrEnum):
    """The visualization of a panel."""

    TIME_SERIES = "timeseries"
    STAT = "stat"
    GAUGE = "gauge"


class Unit(StrEnum):
    """The unit of a panel, with Grafana's identifier."""

    COUNT = "short"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    REQUESTS_PER_SECOND = "reqps"
    PER_SECOND = "ops"
    PERCENT = "percentunit"
    DOLLARS = "currencyUSD"


@dataclass(frozen=True)
class Query:
    """A PromQL expression, and the legend of its series."""

    expression: str
    legend: str = ""
    may_be_empty: bool = False
    """Whether the result may be empty in a healthy system: no failures, no logins."""


@dataclass(frozen=True)
class Threshold:
    """The value from which a colour applies."""

    value: float
    colour: str


def thresholds(warning: float, critical: float) -> tuple[Threshold, ...]:
    return Threshold(warning, "yellow"), Threshold(critical, "red")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A panel of a dashboard."""

    title: str
    description: str
    queries: tuple[Query, ...]
    type: PanelType = PanelType.TIME_SERIES
    unit: Unit = Unit.COUNT
    thresholds: tuple[Threshold, ...] = ()
    base_colour: str = "green"
    """The colour of values below all thresholds."""
    minimum: float | None = None
    maximum: float | None = None
    decimals: int | None = None
    width: int = 8
    height: int = 8
    linked_dashboard: str = ""
    """The name of a dashboard with more details."""


@dataclass(frozen=True)
class Row:
    """Panels under one title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A template variable of a dashboard."""

    name: str
    label: str
    values: str
    """The query for its values."""
    is_multi: bool = False
    """Whether several values can be selected; the default is all."""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A Grafana dashboard."""

    name: str
    """Part of its file name, its URL and the name of its ConfigMap."""
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @property
    def uid(self) -> str:
        return f"kafscale-{self.name}"

    def panels(self) -> Iterator[Panel]:
        for row in self.rows:
            yield from row.panels


def time_series(title: str, description: str, unit: Unit, *queries: Query, width: int = 8) -> Panel:
    """Return a time series panel without thresholds."""
    return Panel(title=title, description=description, unit=unit, queries=queries, width=width)


def stat(title: str, description: str, unit: Unit, *queries: Query) -> Panel:
    """Return a small panel with the current value."""
    return Panel(
        title=title,
        description=description,
        unit=unit,
        queries=queries,
        type=PanelType.STAT,
        width=4,
        height=4,
    )


def label_values(series: str, label: str) -> str:
    return f"label_values({series}, {label})"


NAMESPACE: Final = Variable(
    name="namespace", label="Namespace", values=label_values("kafscale_brokers", "namespace")
)
CLUSTER: Final = Variable(
    name="cluster",
    label="Cluster",
    values=label_values(
        promql.selector("kafscale_brokers", promql.equals("namespace", "$namespace")), "cluster"
    ),
)
TOPIC: Final = Variable(
    name="topic",
    label="Topic",
    values=label_values(promql.in_cluster("kafscale_produce_requests_total"), "topic"),
    is_multi=True,
)
GROUP: Final = Variable(
    name="group",
    label="Group",
    values=label_values(promql.in_cluster("kafscale_consumer_lag"), "group"),
    is_multi=True,
)
CLUSTER_VARIABLES: Final = (NAMESPACE, CLUSTER)
JOB: Final = Variable(
    name="job",
    label="Job",
    values=label_values("kafscale_pipeline_last_run_success", "job"),
    is_multi=True,
)
PIPELINE_TOPIC: Final = Variable(
    name="topic",
    label="Topic",
    values=label_values("kafscale_pipeline_last_run_success", "topic"),
    is_multi=True,
)
