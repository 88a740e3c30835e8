"""The page about monitoring, made from dashboards and alerts; a test compares it with docs."""

from collections.abc import Iterator
from typing import Final

from kafscale.monitoring.alerts import GROUPS
from kafscale.monitoring.alerts.rule import Alert, Group
from kafscale.monitoring.dashboards import DASHBOARDS
from kafscale.monitoring.dashboards.panels import Dashboard
from kafscale.observability.metrics.cardinality import (
    GROUP_SERIES_MAX,
    LAG_SERIES_MAX,
    OTHER,
    PARTITION_SERIES_MAX,
    TOPIC_SERIES_MAX,
)
from kafscale.observability.metrics.jobs import RUNS_MAX
from kafscale.observability.prices import Prices

_PRICES: Final = Prices()

_INTRODUCTION: Final = f"""\
<!-- Written by `make docs` from the dashboards and alerts in the code; edit those instead. -->

# Monitoring

Brokers and the operator serve `/metrics` at port 9093, the console at its own: [every metric](metrics.md). For Prometheus
there are alerts, for Grafana dashboards, both written in code (`src/kafscale/observability`) and judged by a real
Prometheus that scrapes a live broker: every expression is evaluated, and shows something.

## Import

With Helm, all of it is there: [install](operations/install.md#monitoring). Without:

    kafscale monitoring alerts > kafscale-alerts.yaml             for `rule_files` of Prometheus
    kafscale monitoring dashboards --to /var/lib/grafana/kafscale for Grafana's provisioning, or its Import
    kafscale monitoring dashboards cluster                        one of them, to be looked at

[deploy/prometheus](../deploy/prometheus/prometheus.yml) has a configuration of Prometheus, and
[deploy/grafana](../deploy/grafana/provisioning/dashboards/kafscale.yaml) the provisioning of Grafana (10.4 or later), to begin with.

Two things matter where you scrape by yourself:

* Labels. Every series of brokers needs `namespace`, `cluster`, `pod`, and `service` (which ends in `-broker-headless`); ServiceMonitors see to that. Without
  `namespace` and `cluster`, dashboards work for the one cluster that there is, and alerts cannot tell which one it is.
* `honor_labels: true` for the operator and the console: their series say by themselves which `namespace` and `cluster`, or which `job`, they are about.

## How many series there are

Names that clients make up do not become series: only topics, partitions and groups that exist. They come and go with them. A broker tells {PARTITION_SERIES_MAX:,}
partitions, {TOPIC_SERIES_MAX:,} topics, {GROUP_SERIES_MAX:,} groups and {LAG_SERIES_MAX:,} lags by name, the console {RUNS_MAX:,} pairs of a job and a topic; what comes beyond that is told
together, with the value `{OTHER}` in every label that would name it, so that sums stay right. (Of runs, the oldest are left out.) No label has the name of a client, a user or an address.

## Dashboards

They lead to each other, with what has been chosen. Dollars are list prices of S3: ${_PRICES.storage_gb_month} a GB and month, ${_PRICES.put_thousand} for a thousand PUTs or LISTs, ${_PRICES.get_thousand}
for a thousand GETs, the same that `kafscale spark report` reckons with unless told otherwise.

"""  # noqa: E501 - the text of a page.

_ALERTS: Final = """\
## Alerts

*critical* wakes people up: clients are, or soon will be, without service. *warning* can wait for
the morning. Each leads to its place in the [runbook](operations/runbook.md), which says what to do.

"""


def page() -> str:
    """`docs/monitoring.md`."""
    boards = "".join("".join(_dashboard(each)) for each in DASHBOARDS)
    groups = "".join("".join(_group(each)) for each in GROUPS)
    return (_INTRODUCTION + boards + _ALERTS + groups).rstrip("\n") + "\n"


def _dashboard(dashboard: Dashboard) -> Iterator[str]:
    chosen = ", ".join(f"`{variable.name}`" for variable in dashboard.variables)
    yield f"### {dashboard.title}\n\n{dashboard.about} One chooses: {chosen}.\n\n"
    yield "| row | panels |\n|---|---|\n"
    for row in dashboard.rows:
        yield f"| {row.title} | {'; '.join(panel.title for panel in row.panels)} |\n"
    yield "\n"


def _group(group: Group) -> Iterator[str]:
    yield f"### {group.name}\n\n| alert | severity | after | what follows |\n|---|---|---|---|\n"
    for alert in group.alerts:
        yield _row(alert)
    yield "\n"


def _row(alert: Alert) -> str:
    link = f"[{alert.name}]({alert.runbook.removeprefix('docs/')})"
    return (
        f"| {link} | {alert.severity.value} | {alert.lasts or 'at once'} | {alert.description} |\n"
    )
