"""All metrics of Spark jobs.

Jobs end and cannot be scraped; they write run records to the bucket, from which the console reports
the last run of each job and topic. At most `RUNS_MAX` runs are reported.

The label `job` is also set by Prometheus: it must be configured to keep this one (`honor_labels:
true`), or renames it to `exported_job`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kafscale.observability.metrics.metric import Metric, Series

RUNS_MAX: Final = 2000
"""Pairs of a job and a topic with series of their own; beyond it, the oldest are omitted."""


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """The last finished run of a job for a topic."""

    job: str
    topic: str
    ended_at_ms: int
    succeeded: bool
    duration_seconds: float
    records: int
    """Records read or written, depending on the job."""
    newest_record_at_ms: int | None = None
    """The timestamp of the newest record that any run has processed; None if unknown."""


@dataclass(frozen=True)
class PipelineStatus:
    """The last run of every job and topic."""

    now_ms: int
    runs: tuple[LastRun, ...]

    @classmethod
    def of(cls, now_ms: int, runs: Iterable[LastRun]) -> "PipelineStatus":
        """Select the newest run of each job and topic, up to the limit."""
        newest_first = sorted(runs, key=lambda run: run.ended_at_ms, reverse=True)
        by_job_and_topic: dict[tuple[str, str], LastRun] = {}
        for run in newest_first:
            by_job_and_topic.setdefault((run.job, run.topic), run)
        return cls(now_ms, tuple(islice(by_job_and_topic.values(), RUNS_MAX)))


def exposition(status: PipelineStatus) -> bytes:
    """All metrics in Prometheus' text format, as served at `/metrics`."""
    return "".join(each.render(status) for each in PIPELINE_METRICS).encode()


PipelineMetric = Metric[PipelineStatus]


def _last_run(
    name: str, meaning: str, read: Callable[[LastRun, int], float | None]
) -> PipelineMetric:
    """A gauge of the last run; there is no series if the value is unknown."""

    def series(status: PipelineStatus) -> Series:
        for run in status.runs:
            if (value := read(run, status.now_ms)) is not None:
                yield (run.job, run.topic), value

    return Metric(f"kafscale_pipeline_{name}", "gauge", ("job", "topic"), meaning, series)


def _freshness(run: LastRun, now_ms: int) -> float | None:
    if run.newest_record_at_ms is None:
        return None
    return max(now_ms - run.newest_record_at_ms, 0) / 1000


PIPELINE_METRICS: Final[tuple[PipelineMetric, ...]] = (
    _last_run(
        "last_run_timestamp_seconds",
        "End of the last run of a job for a topic, in seconds since 1970.",
        lambda run, _: run.ended_at_ms / 1000,
    ),
    _last_run(
        "last_run_success",
        "1 if that run succeeded, 0 if it failed.",
        lambda run, _: int(run.succeeded),
    ),
    _last_run(
        "last_run_duration_seconds", "Duration of that run.", lambda run, _: run.duration_seconds
    ),
    _last_run("last_run_records", "Records that the run processed.", lambda run, _: run.records),
    _last_run(
        "freshness_seconds", "Age of the newest record that a job has processed.", _freshness
    ),
)
