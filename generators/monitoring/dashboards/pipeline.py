"""The pipeline dashboard: results, durations and freshness of Spark jobs.

Jobs write run records to the bucket; the console exports metrics of the last runs.
"""

from typing import Final

from generators.monitoring.dashboards.panels import (
    JOB,
    PIPELINE_TOPIC,
    Dashboard,
    Panel,
    PanelType,
    Query,
    Row,
    Threshold,
    Unit,
    stat,
    thresholds,
    time_series,
)
from generators.monitoring.promql import matches, max_by, min_by, or_zero, selector

_SELECTED: Final = (matches("job", "$job"), matches("topic", "$topic"))
_JOB_LABELS: Final = ("job", "topic")
_JOB_LEGEND: Final = "{{job}} - {{topic}}"


def _pipeline_metric(name: str) -> str:
    return selector(f"kafscale_pipeline_{name}", *_SELECTED)


_SUCCESS: Final = min_by(_pipeline_metric("last_run_success"), *_JOB_LABELS)
_ENDED: Final = max_by(_pipeline_metric("last_run_timestamp_seconds"), *_JOB_LABELS)

_CURRENT: Final = Row(
    "Current",
    (
        stat("Jobs", "Jobs that have run, by topic.", Unit.COUNT, Query(f"count({_SUCCESS})")),
        Panel(
            title="Failing",
            description="Jobs whose last run failed, by topic.",
            type=PanelType.STAT,
            thresholds=(Threshold(1, "red"),),
            queries=(Query(or_zero(f"count({_SUCCESS} == 0)")),),
            width=4,
            height=4,
        ),
        Panel(
            title="Lowest freshness",
            description="Age of the newest record that the job with the lowest freshness has "
            "processed.",
            type=PanelType.STAT,
            unit=Unit.SECONDS,
            thresholds=thresholds(3600, 21_600),
            queries=(Query(max_by(_pipeline_metric("freshness_seconds"))),),
            width=4,
            height=4,
        ),
        Panel(
            title="Last run",
            description="1 if the last run succeeded, 0 if it failed.",
            type=PanelType.STAT,
            base_colour="red",
            thresholds=(Threshold(1, "green"),),
            queries=(Query(_SUCCESS, _JOB_LEGEND),),
            width=12,
            height=4,
        ),
    ),
)

_RUNS: Final = Row(
    "Runs",
    (
        Panel(
            title="Freshness",
            description="Age of the newest record that a job has processed. It also grows while no "
            "records are produced to the topic.",
            unit=Unit.SECONDS,
            thresholds=thresholds(3600, 21_600),
            queries=(
                Query(max_by(_pipeline_metric("freshness_seconds"), *_JOB_LABELS), _JOB_LEGEND),
            ),
            width=12,
        ),
        time_series(
            "Time since the last run",
            "Time since the end of the last run.",
            Unit.SECONDS,
            Query(f"time() - {_ENDED}", _JOB_LEGEND),
            width=12,
        ),
        time_series(
            "Duration",
            "Duration of the last run.",
            Unit.SECONDS,
            Query(max_by(_pipeline_metric("last_run_duration_seconds"), *_JOB_LABELS), _JOB_LEGEND),
        ),
        time_series(
            "Records",
            "Records that the last run processed.",
            Unit.COUNT,
            Query(max_by(_pipeline_metric("last_run_records"), *_JOB_LABELS), _JOB_LEGEND),
        ),
        time_series(
            "Records per second",
            "Throughput of the last run.",
            Unit.PER_SECOND,
            Query(
                f"{max_by(_pipeline_metric('last_run_records'), *_JOB_LABELS)}"
                f" / ({max_by(_pipeline_metric('last_run_duration_seconds'), *_JOB_LABELS)} > 0)",
                _JOB_LEGEND,
            ),
        ),
    ),
)

PIPELINE_DASHBOARD: Final = Dashboard(
    name="pipeline",
    title="Kafscale: pipeline",
    description="Results, durations and freshness of Spark jobs.",
    variables=(JOB, PIPELINE_TOPIC),
    rows=(_CURRENT, _RUNS),
)
