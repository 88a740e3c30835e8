"""Every metric of the data pipeline, declared once.

The law is that of `metrics`: what is documented is what a scrape shows. Jobs on Spark come and go,
so that nobody can scrape them; they leave records of their runs in the bucket, and whoever reads
those (the console) tells the last run of each job and topic here. However many runs there are, at
most `RUNS_MAX` are told by name. Serving `/metrics` over HTTP is left to the application.

The label `job` is also one that Prometheus gives to what it scrapes: it has to be told to honour
ours (`honor_labels: true`), or it calls it `exported_job`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kafscale.observability.metrics.declaration import Metric
from kafscale.observability.metrics.text_format import Series, render

RUNS_MAX: Final = 2000
"""Pairs of a job and a topic that have series of their own: beyond that, the oldest have none."""


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """How a job went for a topic when it last ran to an end, be it good or bad."""

    job: str
    topic: str
    ended_at_ms: int
    succeeded: bool
    duration_seconds: float
    records: int
    """That it read, or wrote, whichever the job counts."""
    newest_record_at_ms: int | None = None
    """The timestamp of the newest record that any run has handled; None if that is not known."""


@dataclass(frozen=True)
class PipelineStatus:
    """The last run of every job and topic, as they are known at a moment."""

    now_ms: int
    runs: tuple[LastRun, ...]

    @classmethod
    def of(cls, now_ms: int, runs: Iterable[LastRun]) -> "PipelineStatus":
        """Those that may be told: one for each job and topic, the newest, and not too many."""
        newest_first = sorted(runs, key=lambda run: run.ended_at_ms, reverse=True)
        by_place: dict[tuple[str, str], LastRun] = {}
        for run in newest_first:
            by_place.setdefault((run.job, run.topic), run)
        return cls(now_ms, tuple(islice(by_place.values(), RUNS_MAX)))


def exposition(figures: PipelineStatus) -> bytes:
    """All metrics in Prometheus' text format: what `/metrics` answers."""
    return "".join(
        render(each.name, each.type, each.meaning, each.labels, each.read(figures))
        for each in PIPELINE_METRICS
    ).encode()


PipelineMetric = Metric[PipelineStatus]


def _last_run(
    name: str, meaning: str, read: Callable[[LastRun, int], float | None]
) -> PipelineMetric:
    """A gauge of the last run; there is none where nothing is known."""

    def series(figures: PipelineStatus) -> Series:
        for run in figures.runs:
            if (value := read(run, figures.now_ms)) is not None:
                yield (run.job, run.topic), value

    return Metric(f"kafscale_pipeline_{name}", "gauge", ("job", "topic"), meaning, series)


def _freshness(run: LastRun, now_ms: int) -> float | None:
    if run.newest_record_at_ms is None:
        return None
    return max(now_ms - run.newest_record_at_ms, 0) / 1000


PIPELINE_METRICS: Final[tuple[PipelineMetric, ...]] = (
    _last_run(
        "last_run_timestamp_seconds",
        "When a job last came to an end for a topic, in seconds since 1970.",
        lambda run, _: run.ended_at_ms / 1000,
    ),
    _last_run(
        "last_run_success",
        "1 if that run did what it was to do, 0 if it failed.",
        lambda run, _: int(run.succeeded),
    ),
    _last_run(
        "last_run_duration_seconds", "How long that run took.", lambda run, _: run.duration_seconds
    ),
    _last_run("last_run_records", "How many records that run handled.", lambda run, _: run.records),
    _last_run(
        "freshness_seconds",
        "How old the newest record is that a job has handled: what readers of its outcome miss.",
        _freshness,
    ),
)
