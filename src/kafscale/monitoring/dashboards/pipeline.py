"""The dashboard of the data pipeline: whether jobs run, how they end, and how fresh their work is.

Jobs leave records of their runs in the bucket; the console tells Prometheus of the last ones.
"""

from typing import Final

from kafscale.monitoring.dashboards.panels import (
    JOB,
    PIPELINE_TOPIC,
    Dashboard,
    Kind,
    Panel,
    Query,
    Row,
    Threshold,
    Unit,
    lines,
    number,
    worse_above,
)
from kafscale.monitoring.promql import largest, matches, or_zero, series, smallest

_CHOSEN: Final = (matches("job", "$job"), matches("topic", "$topic"))
_PLACE: Final = ("job", "topic")
_NAMED: Final = "{{job}} - {{topic}}"


def _last(name: str) -> str:
    return series(f"kafscale_pipeline_{name}", *_CHOSEN)


_SUCCESS: Final = smallest(_last("last_run_success"), *_PLACE)
_ENDED: Final = largest(_last("last_run_timestamp_seconds"), *_PLACE)

_NOW: Final = Row(
    "Now",
    (
        number(
            "Jobs",
            "Pairs of a job and a topic that have ever run.",
            Unit.COUNT,
            Query(f"count({_SUCCESS})"),
        ),
        Panel(
            title="Failing",
            about="Pairs of a job and a topic whose last run failed.",
            kind=Kind.NUMBER,
            thresholds=(Threshold(1, "red"),),
            queries=(Query(or_zero(f"count({_SUCCESS} == 0)")),),
            width=4,
            height=4,
        ),
        Panel(
            title="Least fresh",
            about="How old the newest record is that the job furthest behind has handled.",
            kind=Kind.NUMBER,
            unit=Unit.SECONDS,
            thresholds=worse_above(3600, 21_600),
            queries=(Query(largest(_last("freshness_seconds"))),),
            width=4,
            height=4,
        ),
        Panel(
            title="Last run",
            about="1 where it did what it was to do, 0 where it failed.",
            kind=Kind.NUMBER,
            base_colour="red",
            thresholds=(Threshold(1, "green"),),
            queries=(Query(_SUCCESS, _NAMED),),
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
            about="How old the newest record is that a job has handled: what readers of its "
            "outcome miss. It also grows while nobody writes to the topic.",
            unit=Unit.SECONDS,
            thresholds=worse_above(3600, 21_600),
            queries=(Query(largest(_last("freshness_seconds"), *_PLACE), _NAMED),),
            width=12,
        ),
        lines(
            "Since the last run",
            "How long ago a job came to an end; a saw, whose teeth are its schedule.",
            Unit.SECONDS,
            Query(f"time() - {_ENDED}", _NAMED),
            width=12,
        ),
        lines(
            "Duration",
            "How long the last run took.",
            Unit.SECONDS,
            Query(largest(_last("last_run_duration_seconds"), *_PLACE), _NAMED),
        ),
        lines(
            "Records",
            "How many records the last run handled.",
            Unit.COUNT,
            Query(largest(_last("last_run_records"), *_PLACE), _NAMED),
        ),
        lines(
            "Records a second",
            "How fast the last run was.",
            Unit.PER_SECOND,
            Query(
                f"{largest(_last('last_run_records'), *_PLACE)}"
                f" / ({largest(_last('last_run_duration_seconds'), *_PLACE)} > 0)",
                _NAMED,
            ),
        ),
    ),
)

PIPELINE_DASHBOARD: Final = Dashboard(
    name="pipeline",
    title="Kafscale: the pipeline",
    about="Whether jobs on Spark run, how they end, and how fresh their work is.",
    variables=(JOB, PIPELINE_TOPIC),
    rows=(_NOW, _RUNS),
)
