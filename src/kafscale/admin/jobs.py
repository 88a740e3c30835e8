"""The runs of pipeline jobs, read from the records that jobs leave in the bucket.

The evaluation is pure: whether a run that is recorded as running is still alive, how fresh the
results are, the newest cost report, and the runs that metrics export.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kafscale.admin.cluster.cost import CURRENCY
from kafscale.admin.connection import ClusterConnections
from kafscale.observability.metrics.jobs import LastRun
from kafscale.storage.job_runs import JobRun, JobRuns, Outcome, TopicRun

RUNS_MAX: Final = 50
"""How many runs of each job are read."""
STALE_MS_MAX: Final = 24 * 3_600_000
"""A running job whose record was not updated for this long is considered killed."""
REPORT: Final = "report"
ALL_TOPICS: Final = "*"
"""The topic label of runs without topics."""

Runs = Mapping[str, Sequence[JobRun]]
"""By job, newest first."""


class TopicCost(msgspec.Struct, frozen=True, rename="camel"):
    """The cost of a topic in a cost report."""

    topic: str
    stored_bytes: int
    record_count: int | None
    cost_per_day: float


class CostReport(msgspec.Struct, frozen=True, rename="camel"):
    """The cost of all topics."""

    created_at_ms: int
    total_per_day: float
    currency: str
    topics: list[TopicCost]
    """The most expensive first."""


async def recent_runs(connections: ClusterConnections, now_ms: int) -> dict[str, list[JobRun]]:
    """The newest runs of each job that has left a record."""
    async with connections.objects() as store:
        records = JobRuns(store, connections.namespace)
        return {
            job: [
                with_final_outcome(run, now_ms) for run in await records.newest(job, limit=RUNS_MAX)
            ]
            for job in await records.jobs()
        }


def with_final_outcome(run: JobRun, now_ms: int) -> JobRun:
    """Mark a stale running job as failed: a killed job cannot update its record."""
    last_update_ms = max(run.updated_at_ms, run.started_at_ms)
    if run.outcome is not Outcome.RUNNING or now_ms - last_update_ms < STALE_MS_MAX:
        return run
    return msgspec.structs.replace(
        run,
        outcome=Outcome.FAILED,
        ended_at_ms=last_update_ms,
        error="no progress for a day; the job was probably killed; run it again",
    )


def success_rate(runs: Sequence[JobRun]) -> float:
    """The share of ended runs that succeeded; 1 if no run has ended."""
    ended = [run for run in runs if run.outcome is not Outcome.RUNNING]
    return sum(run.outcome is Outcome.SUCCEEDED for run in ended) / len(ended) if ended else 1.0


def newest_record_ms(runs: Sequence[JobRun]) -> int | None:
    """The newest record timestamp that any of the runs has processed."""
    return max((run.newest_timestamp_ms for run in runs if run.newest_timestamp_ms), default=None)


def cost_report(runs: Runs) -> CostReport | None:
    """The newest successful cost report."""
    succeeded = (run for run in runs.get(REPORT, ()) if run.outcome is Outcome.SUCCEEDED)
    run = next(succeeded, None)
    if run is None:
        return None
    topics = [
        TopicCost(name, topic.size_bytes or 0, topic.records_in, _dollars(topic))
        for name, topic in run.by_topic.items()
    ]
    totals = (value for key, value in run.details.items() if key.endswith(".s3DollarsPerDay"))
    total = next(totals, sum(topic.cost_per_day for topic in topics))
    topics.sort(key=lambda topic: topic.cost_per_day, reverse=True)
    return CostReport(run.ended_at_ms or run.updated_at_ms, float(total), CURRENCY, topics)


def last_runs(runs: Runs) -> Iterator[LastRun]:
    """The last run of each job for each topic."""
    for job, newest_first in runs.items():
        ended = [run for run in newest_first if run.ended_at_ms is not None]
        newest_ms: dict[str, int] = {}
        for run in ended:
            for name, topic in _topics(run):
                if topic.newest_timestamp_ms:
                    newest_ms[name] = max(newest_ms.get(name, 0), topic.newest_timestamp_ms)
        seen: set[str] = set()
        for run in ended:
            for name, topic in _topics(run):
                if name not in seen:
                    seen.add(name)
                    yield _last_run(job, run, name, topic, newest_ms.get(name))


def _topics(run: JobRun) -> Iterator[tuple[str, TopicRun]]:
    if run.by_topic:
        yield from run.by_topic.items()
        return
    # The run failed early, or its job does not count by topic.
    whole = TopicRun(run.records_in, run.records_out, run.size_bytes, run.newest_timestamp_ms)
    for name in run.topics or (ALL_TOPICS,):
        yield name, whole


def _last_run(
    job: str, run: JobRun, name: str, topic: TopicRun, newest_record_at_ms: int | None
) -> LastRun:
    assert run.ended_at_ms is not None
    return LastRun(
        job=job,
        topic=name,
        ended_at_ms=run.ended_at_ms,
        succeeded=run.outcome is Outcome.SUCCEEDED,
        duration_seconds=run.seconds,
        records=topic.records_in or topic.records_out or 0,
        newest_record_at_ms=newest_record_at_ms,
    )


def _dollars(topic: TopicRun) -> float:
    value = topic.details.get("dollarsPerDay", 0.0)
    return value if isinstance(value, int | float) else 0.0
