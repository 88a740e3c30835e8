"""What records of runs say about the pipeline."""

import msgspec
import pytest

from kafscale.admin import jobs
from kafscale.storage.job_runs import JobRun, Outcome, TopicRun

HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000


def run(job="merge", number=0, **more):
    """A run that began `number` hours ago."""
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


def going(number):
    return run(number=number, outcome=Outcome.RUNNING, ended_at_ms=None)


def test_a_run_that_tells_nothing_for_a_day_was_killed():
    assert jobs.judged(going(23), NOW_MS) == going(23)
    dead = jobs.judged(going(25), NOW_MS)
    assert dead.outcome is Outcome.FAILED
    assert dead.ended_at_ms == going(25).updated_at_ms
    assert dead.error
    assert jobs.judged(run(number=100), NOW_MS) == run(number=100)


@pytest.mark.parametrize(
    ("runs", "rate"),
    [
        ([], 1.0),
        ([going(0)], 1.0),
        ([run()], 1.0),
        ([going(0), run(), run(outcome=Outcome.FAILED)], 0.5),
        ([run(outcome=Outcome.FAILED)], 0.0),
    ],
)
def test_runs_that_go_on_have_neither_failed_nor_succeeded(runs, rate):
    assert jobs.success_rate(runs) == rate


def test_a_result_is_as_fresh_as_the_newest_record_of_any_run():
    runs = [run(newest_timestamp_ms=5), run(newest_timestamp_ms=9), run()]
    assert jobs.newest_record_ms(runs) == 9
    assert jobs.newest_record_ms([run()]) is None


def test_the_cost_is_that_of_the_newest_report_that_went_well():
    topics = {"a": TopicRun(records_in=1, size_bytes=2, details={"dollarsPerDay": 3.0})}
    told = {"now.s3DollarsPerDay": 4.5, "default.s3DollarsPerDay": 9.0}
    runs = {
        "report": [
            run("report", 0, outcome=Outcome.FAILED),
            run("report", 1, by_topic=topics, details=told),
            run("report", 2),
        ]
    }
    report = jobs.cost_report(runs)
    assert report.dollars_per_day == 4.5
    assert report.topics == [jobs.CostOfTopic("a", 2, 1, 3.0)]
    assert report.made_at_ms == runs["report"][1].ended_at_ms
    assert jobs.cost_report({}) is None
    assert jobs.cost_report({"report": runs["report"][:1]}) is None


def test_without_a_total_it_is_the_sum():
    topics = {
        "a": TopicRun(details={"dollarsPerDay": 3.0}),
        "b": TopicRun(details={"dollarsPerDay": 1}),
        "c": TopicRun(details={"dollarsPerDay": "much"}),
    }
    report = jobs.cost_report({"report": [run("report", by_topic=topics)]})
    assert report.dollars_per_day == 4.0


def test_metrics_tell_the_last_run_for_each_topic():
    runs = [
        going(0),
        run(number=1, outcome=Outcome.FAILED, topics=("a",)),
        run(number=2, by_topic={"a": TopicRun(records_in=7, newest_timestamp_ms=70)}),
        run(number=3, by_topic={"b": TopicRun(records_out=8)}),
    ]
    told = {each.topic: each for each in jobs.last_runs({"merge": runs})}
    assert set(told) == {"a", "b"}
    assert not told["a"].succeeded
    assert told["a"].newest_record_at_ms == 70, "a run that failed made nothing older"
    assert told["b"].succeeded
    assert told["b"].records == 8
    assert told["b"].newest_record_at_ms is None
    assert told["a"].duration_seconds == 60


def test_a_run_that_tells_of_no_topic_is_one_of_all():
    (told,) = jobs.last_runs({"scrub": [run("scrub", records_in=3)]})
    assert (told.topic, told.records) == (jobs.EVERY_TOPIC, 3)


def test_a_run_that_goes_on_is_not_told_of_by_metrics():
    assert list(jobs.last_runs({"merge": [going(0)]})) == []
    dead = msgspec.structs.replace(going(30), updated_at_ms=0)
    (told,) = jobs.last_runs({"merge": [jobs.judged(dead, NOW_MS)]})
    assert not told.succeeded
