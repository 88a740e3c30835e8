"""The evaluation of job runs."""

import msgspec
import pytest

from kafscale.admin import jobs
from kafscale.storage.job_runs import JobRun, Outcome, TopicRun

HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000


def run(job="merge", number=0, **more):
    """A run that started `number` hours ago."""
    started_at_ms = NOW_MS - number * HOUR_MS
    ended_at_ms = started_at_ms + 60_000
    given = {"outcome": Outcome.SUCCEEDED, "ended_at_ms": ended_at_ms} | more
    return JobRun(
        job=job,
        run=f"{number:08x}",
        started_at_ms=started_at_ms,
        updated_at_ms=ended_at_ms,
        **given,
    )


def running(number):
    return run(number=number, outcome=Outcome.RUNNING, ended_at_ms=None)


def test_stale_running_job_has_failed():
    assert jobs.with_final_outcome(running(23), NOW_MS) == running(23)
    dead = jobs.with_final_outcome(running(25), NOW_MS)
    assert dead.outcome is Outcome.FAILED
    assert dead.ended_at_ms == running(25).updated_at_ms
    assert dead.error
    assert jobs.with_final_outcome(run(number=100), NOW_MS) == run(number=100)


@pytest.mark.parametrize(
    ("runs", "rate"),
    [
        ([], 1.0),
        ([running(0)], 1.0),
        ([run()], 1.0),
        ([running(0), run(), run(outcome=Outcome.FAILED)], 0.5),
        ([run(outcome=Outcome.FAILED)], 0.0),
    ],
)
def test_success_rate_ignores_running_jobs(runs, rate):
    assert jobs.success_rate(runs) == rate


def test_newest_record_is_the_newest_of_all_runs():
    runs = [run(newest_timestamp_ms=5), run(newest_timestamp_ms=9), run()]
    assert jobs.newest_record_ms(runs) == 9
    assert jobs.newest_record_ms([run()]) is None


def test_cost_report_is_the_newest_successful_one():
    topics = {"a": TopicRun(records_in=1, size_bytes=2, details={"dollarsPerDay": 3.0})}
    seen = {"now.s3DollarsPerDay": 4.5, "default.s3DollarsPerDay": 9.0}
    runs = {
        "report": [
            run("report", 0, outcome=Outcome.FAILED),
            run("report", 1, by_topic=topics, details=seen),
            run("report", 2),
        ]
    }
    report = jobs.cost_report(runs)
    assert report.total_per_day == 4.5
    assert report.topics == [jobs.TopicCost("a", 2, 1, 3.0)]
    assert report.created_at_ms == runs["report"][1].ended_at_ms
    assert jobs.cost_report({}) is None
    assert jobs.cost_report({"report": runs["report"][:1]}) is None


def test_cost_report_without_total_is_the_sum():
    topics = {
        "a": TopicRun(details={"dollarsPerDay": 3.0}),
        "b": TopicRun(details={"dollarsPerDay": 1}),
        "c": TopicRun(details={"dollarsPerDay": "much"}),
    }
    report = jobs.cost_report({"report": [run("report", by_topic=topics)]})
    assert report.total_per_day == 4.0


def test_last_runs_has_one_run_per_topic():
    runs = [
        running(0),
        run(number=1, outcome=Outcome.FAILED, topics=("a",)),
        run(number=2, by_topic={"a": TopicRun(records_in=7, newest_timestamp_ms=70)}),
        run(number=3, by_topic={"b": TopicRun(records_out=8)}),
    ]
    seen = {each.topic: each for each in jobs.last_runs({"merge": runs})}
    assert set(seen) == {"a", "b"}
    assert not seen["a"].succeeded
    assert seen["a"].newest_record_at_ms == 70, "a run that failed made nothing older"
    assert seen["b"].succeeded
    assert seen["b"].records == 8
    assert seen["b"].newest_record_at_ms is None
    assert seen["a"].duration_seconds == 60


def test_run_without_topics_counts_for_all():
    (seen,) = jobs.last_runs({"scrub": [run("scrub", records_in=3)]})
    assert (seen.topic, seen.records) == (jobs.ALL_TOPICS, 3)


def test_last_runs_omits_running_jobs():
    assert list(jobs.last_runs({"merge": [running(0)]})) == []
    dead = msgspec.structs.replace(running(30), updated_at_ms=0)
    (seen,) = jobs.last_runs({"merge": [jobs.with_final_outcome(dead, NOW_MS)]})
    assert not seen.succeeded
