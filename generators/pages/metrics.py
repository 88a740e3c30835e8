"""docs/metrics.md: every metric, from its declaration."""

from collections.abc import Iterable
from typing import Any

from kafscale.observability.metrics.broker import BROKER_METRICS
from kafscale.observability.metrics.jobs import PIPELINE_METRICS
from kafscale.observability.metrics.metric import Metric
from kafscale.observability.metrics.operator import OPERATOR_METRICS

_INTRODUCTION = """\
<!-- Written by `make docs` from the metrics in the code; edit those instead. -->

# Metrics

All metrics of Kafscale, in Prometheus' text format. [Monitoring](monitoring.md) describes the
dashboards, the alerts and the limits on the number of series.

"""

_PIPELINE = """\
Spark jobs end and cannot be scraped. The console reports the last run of each job and topic, from
the run records in the bucket. Prometheus must keep the label `job` (`honor_labels: true`).

"""

_HEAD = """\
| metric | type | labels | meaning |
|---|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    return (
        f"{_INTRODUCTION}## Brokers\n\n{_table(BROKER_METRICS)}"
        f"\n## Operator\n\n{_table(OPERATOR_METRICS)}"
        f"\n## Pipeline\n\n{_PIPELINE}{_table(PIPELINE_METRICS)}"
    )


def _table(declarations: Iterable[Metric[Any]]) -> str:
    rows = (
        f"| `{declared.name}` | {declared.type} "
        f"| {', '.join(f'`{label}`' for label in declared.labels)} | {declared.meaning} |\n"
        for declared in declarations
    )
    return _HEAD + "".join(rows)
