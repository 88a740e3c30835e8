"""The record that a job leaves: however it ends, and whatever happens to the record itself."""

import asyncio

import pytest

from kafscale.errors import StoreUnavailableError, UnknownTopicError
from kafscale.spark.jobs.report.figures import figures
from kafscale.spark.jobs.scrub.findings import Kind
from kafscale.spark.jobs.shared.run_record import PROGRESS_INTERVAL_MS, recorded
from kafscale.spark.runtime.job_result import JobResult
from kafscale.storage.job_runs import JobRuns, Outcome
from unit.spark.jobs.keyed import MemoryLocation
from unit.spark.jobs.report.test_job import NOW_MS, TODAY, made, tally
from unit.spark.jobs.scrubbing import kinds, scrubbed

DONE = JobResult(
    "lake",
    ("topic", "records", "writtenBytes", "commits"),
    (("orders", 30, 300, 2), ("audit", 3, 40, 1)),
    {"seconds": 1.5, "equalOffsets": True, "nothing": None},
    newest_ms={"orders": 1000, "audit": 2000},
)


class Clock:
    now_ms = 1_700_000_000_000

    def __call__(self):
        return self.now_ms


@pytest.fixture
def location():
    return MemoryLocation()


def records(location):
    return asyncio.run(JobRuns(location.objects, location.namespace).newest())


def test_a_run_that_succeeds_tells_its_figures(location):
    clock = Clock()
    with recorded(location, "lake", clock=clock) as record:
        (begun,) = records(location)
        assert (begun.outcome, begun.ended_at_ms) == (Outcome.RUNNING, None)
        clock.now_ms += 2500
        record.done(DONE)
    (run,) = records(location)
    assert (run.outcome, run.error, run.seconds) == (Outcome.SUCCEEDED, "", 2.5)
    assert run.topics == ("orders", "audit")
    assert (run.records_in, run.records_out, run.size_bytes) == (33, 33, 340)
    assert (run.newest_timestamp_ms, run.by_topic["orders"].newest_timestamp_ms) == (2000, 1000)
    assert (run.by_topic["audit"].records_out, run.by_topic["audit"].size_bytes) == (3, 40)
    assert run.details == {"seconds": 1.5, "equalOffsets": "true"}


def test_what_goes_in_and_out_is_told_apart(location):
    with recorded(location, "compact") as record:
        record.done(
            JobResult(
                "compact",
                ("topic", "recordsBefore", "recordsAfter", "bytesBefore", "bytesAfter"),
                (("orders", 10, 4, 100, 40),),
            )
        )
    (run,) = records(location)
    assert (run.records_in, run.records_out, run.size_bytes) == (10, 4, 40)


def test_a_run_that_fails_tells_why_and_fails(location):
    with pytest.raises(UnknownTopicError), recorded(location, "merge", ["absent"]):
        raise UnknownTopicError("there is no topic 'absent'")
    (run,) = records(location)
    assert (run.outcome, run.error) == (Outcome.FAILED, "there is no topic 'absent'")
    assert run.topics == ("absent",)


def test_what_others_raise_may_hold_secrets(location):
    with pytest.raises(ValueError, match="hunter2"), recorded(location, "lake"):
        raise ValueError("postgresql://me:hunter2@catalog")
    (run,) = records(location)
    assert run.error.startswith("ValueError: ")
    assert "hunter2" not in run.error


def test_an_interrupt_is_recorded(location):
    with pytest.raises(KeyboardInterrupt), recorded(location, "lake"):
        raise KeyboardInterrupt
    assert [run.error for run in records(location)] == ["it was interrupted"]


def test_problems_are_a_failure(location):
    for problems in (("a segment is damaged",), ("one", "two")):
        with recorded(location, "scrub") as record:
            record.done(JobResult("scrub", problems=problems))
    told = {(run.outcome, run.error) for run in records(location)}
    assert told == {
        (Outcome.FAILED, "a segment is damaged"),
        (Outcome.FAILED, "2 problems, the first: one"),
    }


def test_a_run_that_goes_on_tells_now_and_then(location):
    clock = Clock()
    with recorded(location, "lake", clock=clock) as record:
        record.progress(DONE)
        assert records(location)[0].records_in is None
        clock.now_ms += PROGRESS_INTERVAL_MS
        record.progress(DONE)
        (run,) = records(location)
        assert (run.outcome, run.records_in, run.seconds) == (Outcome.RUNNING, 33, 60)


class LostLocation(MemoryLocation):
    def open(self):
        raise StoreUnavailableError("no bucket")


def test_a_record_that_cannot_be_written_does_no_harm():
    with recorded(LostLocation(), "lake") as record:
        record.done(DONE)
    assert record.run.outcome is Outcome.SUCCEEDED


def test_without_a_location_there_is_no_record():
    with recorded(None, "mirror") as record:
        record.done(DONE)
    assert record.run.outcome is Outcome.SUCCEEDED


def test_a_scrub_knows_records_of_runs(location):
    with recorded(location, "lake"):
        pass
    with location.open() as store:
        assert scrubbed(location, store).findings == ()
        store.put("default/_jobs/lake/mine.json", [b"{}"])
        found = kinds(scrubbed(location, store))
    assert list(found) == [(Kind.UNKNOWN, "default/_jobs/lake/mine.json")]


def test_a_report_tells_what_topics_cost(location):
    gb = 10**9
    report = made(
        tally(
            topic="small",
            segments=1,
            segment_bytes=gb,
            records=5,
            newest_ms=NOW_MS - 1,
            oldest_ms=NOW_MS - 1,
            days={TODAY: gb},
        ),
        tally(
            topic="large",
            segments=3,
            segment_bytes=3 * gb,
            records=9,
            newest_ms=NOW_MS,
            oldest_ms=NOW_MS - 1,
            days={TODAY: 3 * gb},
        ),
    )
    with recorded(location, "report") as record:
        record.tell(*figures(report), problems=report.damaged)
    (run,) = records(location)
    assert (run.records_in, run.size_bytes, run.newest_timestamp_ms) == (14, 4 * gb, NOW_MS)
    assert run.topics == ("large", "small")
    large, small = run.by_topic["large"].details, run.by_topic["small"].details
    assert large["storageDollarsPerDay"] == pytest.approx(3 * 0.023 / 30, abs=1e-6)
    shares = [topic["requestDollarsPerDay"] for topic in (large, small)]
    assert shares[0] == pytest.approx(3 * shares[1], rel=0.02)
    profile = report.profiles[0]
    assert sum(shares) == pytest.approx((profile.bill.puts + profile.bill.gets) / 30, abs=1e-5)
    assert run.details["storedBytes"] == 4 * gb
    assert run.details["latency.s3DollarsPerMonth"] == pytest.approx(profile.bill.s3, abs=1e-3)
