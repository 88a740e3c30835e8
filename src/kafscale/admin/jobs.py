"""What is known of the jobs of the data pipeline: the records that they left, and what those say.

The judgements are pure: whether a run that says it goes on still does, how fresh a result is, what
the newest cost report says, and which runs metrics tell of.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from kafscale.admin.connection import Reach
from kafscale.observability.metrics.jobs import LastRun
from kafscale.storage.job_runs import JobRun, JobRuns, Outcome, TopicRun

RUNS_MAX: Final = 50
"""How many runs of each job are looked at."""
SILENT_MS_MAX: Final = 24 * 3_600_000
"""How long a run that says it goes on may tell nothing before it is taken for dead."""
REPORT: Final = "report"
EVERY_TOPIC: Final = "*"
"""What metrics call the topic of a run that tells of none."""

Runs = Mapping[str, Sequence[JobRun]]
"""By job, the newest first."""


@dataclass(frozen=True)
class CostOfTopic:
    """What a topic costs, as a report reckons."""

    topic: str
    stored_bytes: int
    record_count: int | None
    dollars_per_day: float


@dataclass(frozen=True)
class CostReport:
    """What everything costs."""

    made_at_ms: int
    dollars_per_day: float
    topics: list[CostOfTopic]


async def recent_runs(reach: Reach, now_ms: int) -> dict[str, list[JobRun]]:
    """The newest runs of every job that has left a record."""
    async with reach.objects() as store:
        records = JobRuns(store, reach.namespace)
        return {
            job: [judged(run, now_ms) for run in await records.newest(job, limit=RUNS_MAX)]
            for job in await records.jobs()
        }


def judged(run: JobRun, now_ms: int) -> JobRun:
    """A run as it is: one that was killed could not say so."""
    last_heard_ms = max(run.updated_at_ms, run.started_at_ms)
    if run.outcome is not Outcome.RUNNING or now_ms - last_heard_ms < SILENT_MS_MAX:
        return run
    return msgspec.structs.replace(
        run,
        outcome=Outcome.FAILED,
        ended_at_ms=last_heard_ms,
        error="it has told nothing for a day, so it was killed; run it again",
    )


def success_rate(runs: Sequence[JobRun]) -> float:
    """The share of the runs that have ended which ended well; 1 where none has."""
    ended = [run for run in runs if run.outcome is not Outcome.RUNNING]
    return sum(run.outcome is Outcome.SUCCEEDED for run in ended) / len(ended) if ended else 1.0


def newest_record_ms(runs: Sequence[JobRun]) -> int | None:
    """The time of the newest record that any of the runs has handled."""
    return max((run.newest_timestamp_ms for run in runs if run.newest_timestamp_ms), default=None)


def cost_report(runs: Runs) -> CostReport | None:
    """What the newest report says that went well."""
    good = (run for run in runs.get(REPORT, ()) if run.outcome is Outcome.SUCCEEDED)
    run = next(good, None)
    if run is None:
        return None
    topics = [
        CostOfTopic(name, topic.size_bytes or 0, topic.records_in, _dollars(topic))
        for name, topic in run.by_topic.items()
    ]
    totals = (value for key, value in run.details.items() if key.endswith(".s3DollarsPerDay"))
    total = next(totals, sum(topic.dollars_per_day for topic in topics))
    return CostReport(run.ended_at_ms or run.updated_at_ms, float(total), topics)


def last_runs(runs: Runs) -> Iterator[LastRun]:
    """How every job last went for each topic."""
    for job, newest_first in runs.items():
        ended = [run for run in newest_first if run.ended_at_ms is not None]
        newest_ms: dict[str, int] = {}
        for run in ended:
            for name, topic in _topics(run):
                if topic.newest_timestamp_ms:
                    newest_ms[name] = max(newest_ms.get(name, 0), topic.newest_timestamp_ms)
        told: set[str] = set()
        for run in ended:
            for name, topic in _topics(run):
                if name not in told:
                    told.add(name)
                    yield _last_run(job, run, name, topic, newest_ms.get(name))


def _topics(run: JobRun) -> Iterator[tuple[str, TopicRun]]:
    if run.by_topic:
        yield from run.by_topic.items()
        return
    # It failed before it could tell, or tells no figures of topics.
    whole = TopicRun(run.records_in, run.records_out, run.size_bytes, run.newest_timestamp_ms)
    for name in run.topics or (EVERY_TOPIC,):
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
