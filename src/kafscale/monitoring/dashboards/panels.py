"""What a dashboard is made of: queries, panels, rows and variables, before Grafana sees them.

The law: a panel says in a sentence what it shows, in which unit, and where it becomes bad; a query
that shows nothing while all is well says so, and a live test sees to it that all others show
something. How this becomes Grafana's JSON is left to `rendering`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kafscale.monitoring import promql

COLUMNS: Final = 24
"""How wide a dashboard of Grafana is."""


class Kind(StrEnum):
    """How a panel shows its numbers."""

    LINES = "timeseries"
    NUMBER = "stat"
    DIAL = "gauge"


class Unit(StrEnum):
    """What is counted, in Grafana's words."""

    COUNT = "short"
    SECONDS = "s"
    BYTES = "bytes"
    BYTES_PER_SECOND = "Bps"
    REQUESTS_PER_SECOND = "reqps"
    PER_SECOND = "ops"
    SHARE = "percentunit"
    DOLLARS = "currencyUSD"


@dataclass(frozen=True)
class Query:
    """One expression, and what its series are called."""

    expression: str
    legend: str = ""
    may_be_empty: bool = False
    """Whether it is right that there is nothing to see: no failures, no logins."""


@dataclass(frozen=True)
class Threshold:
    """From which value on a number has a colour."""

    value: float
    colour: str


def worse_above(warning: float, bad: float) -> tuple[Threshold, ...]:
    return Threshold(warning, "yellow"), Threshold(bad, "red")


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture."""

    title: str
    about: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    unit: Unit = Unit.COUNT
    thresholds: tuple[Threshold, ...] = ()
    base_colour: str = "green"
    """Of values below all thresholds."""
    minimum: float | None = None
    maximum: float | None = None
    decimals: int | None = None
    width: int = 8
    height: int = 8
    leads_to: str = ""
    """The dashboard that shows more of it, by name."""


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """What the reader of a dashboard chooses."""

    name: str
    label: str
    values: str
    """The expression that lists them."""
    several: bool = False
    """Whether several may be chosen, and all are to begin with."""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A page of panels."""

    name: str
    """Of its file, of the end of its address, and of an object in Kubernetes."""
    title: str
    about: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    @property
    def uid(self) -> str:
        return f"kafscale-{self.name}"

    def panels(self) -> Iterator[Panel]:
        for row in self.rows:
            yield from row.panels


def lines(title: str, about: str, unit: Unit, *asked: Query, width: int = 8) -> Panel:
    """The common case: lines over time, without a bound."""
    return Panel(title=title, about=about, unit=unit, queries=asked, width=width)


def number(title: str, about: str, unit: Unit, *asked: Query) -> Panel:
    """What it is now, small."""
    return Panel(
        title=title, about=about, unit=unit, queries=asked, kind=Kind.NUMBER, width=4, height=4
    )


def listed(selected: str, label: str) -> str:
    return f"label_values({selected}, {label})"


NAMESPACE: Final = Variable(
    name="namespace", label="Namespace", values=listed("kafscale_brokers", "namespace")
)
CLUSTER: Final = Variable(
    name="cluster",
    label="Cluster",
    values=listed(
        promql.series("kafscale_brokers", promql.equals("namespace", "$namespace")), "cluster"
    ),
)
TOPIC: Final = Variable(
    name="topic",
    label="Topic",
    values=listed(promql.here("kafscale_produce_requests_total"), "topic"),
    several=True,
)
GROUP: Final = Variable(
    name="group",
    label="Group",
    values=listed(promql.here("kafscale_consumer_lag"), "group"),
    several=True,
)
OF_A_CLUSTER: Final = (NAMESPACE, CLUSTER)
JOB: Final = Variable(
    name="job",
    label="Job",
    values=listed("kafscale_pipeline_last_run_success", "job"),
    several=True,
)
PIPELINE_TOPIC: Final = Variable(
    name="topic",
    label="Topic",
    values=listed("kafscale_pipeline_last_run_success", "topic"),
    several=True,
)
