"""A job writes its run record however it ends, and does not fail with it."""

import asyncio

import pytest

from kafscale.errors import StoreUnavailableError, UnknownTopicError
from kafscale.spark.jobs.report.run_totals import run_totals
from kafscale.spark.jobs.scrub.listing import FindingKind
from kafscale.spark.jobs.shared.run_record import PROGRESS_INTERVAL_MS, record_run
from kafscale.spark.runtime.job_result import JobResult
from kafscale.storage.job_runs import JobRuns, Outcome
from unit.spark.jobs.keyed_log import MemoryLocation
from unit.spark.jobs.report.test_job import NOW_MS, TODAY, build_report, usage_of
from unit.spark.jobs.scrub.local_scrub import kinds, scrub

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


def test_record_of_a_successful_run_has_totals(location):
    clock = Clock()
    with record_run(location, "lake", clock=clock) as record:
        (begun,) = records(location)
        assert (begun.outcome, begun.ended_at_ms) == (Outcome.RUNNING, None)
        clock.now_ms += 2500
        record.set_summary(DONE)
    (run,) = records(location)
    assert (run.outcome, run.error, run.seconds) == (Outcome.SUCCEEDED, "", 2.5)
    assert run.topics == ("orders", "audit")
    assert (run.records_in, run.records_out, run.size_bytes) == (33, 33, 340)
    assert (run.newest_timestamp_ms, run.by_topic["orders"].newest_timestamp_ms) == (2000, 1000)
    assert (run.by_topic["audit"].records_out, run.by_topic["audit"].size_bytes) == (3, 40)
    assert run.details == {"seconds": 1.5, "equalOffsets": "true"}


def test_record_distinguishes_records_in_and_out(location):
    with record_run(location, "compact") as record:
        record.set_summary(
            JobResult(
                "compact",
                ("topic", "recordsBefore", "recordsAfter", "bytesBefore", "bytesAfter"),
                (("orders", 10, 4, 100, 40),),
            )
        )
    (run,) = records(location)
    assert (run.records_in, run.records_out, run.size_bytes) == (10, 4, 40)


def test_record_of_a_failed_run_has_the_error(location):
    with pytest.raises(UnknownTopicError), record_run(location, "merge", ["absent"]):
        raise UnknownTopicError("there is no topic 'absent'")
    (run,) = records(location)
    assert (run.outcome, run.error) == (Outcome.FAILED, "there is no topic 'absent'")
    assert run.topics == ("absent",)


def test_record_hides_messages_of_foreign_exceptions(location):
    with pytest.raises(ValueError, match="hunter2"), record_run(location, "lake"):
        raise ValueError("postgresql://me:hunter2@catalog")
    (run,) = records(location)
    assert run.error.startswith("ValueError: ")
    assert "hunter2" not in run.error


def test_record_of_an_interrupted_run(location):
    with pytest.raises(KeyboardInterrupt), record_run(location, "lake"):
        raise KeyboardInterrupt
    assert [run.error for run in records(location)] == ["interrupted"]


def test_problems_make_the_run_a_failure(location):
    for problems in (("a segment is damaged",), ("one", "two")):
        with record_run(location, "scrub") as record:
            record.set_summary(JobResult("scrub", problems=problems))
    results = {(run.outcome, run.error) for run in records(location)}
    assert results == {
        (Outcome.FAILED, "a segment is damaged"),
        (Outcome.FAILED, "2 problems, the first: one"),
    }


def test_record_is_updated_periodically_while_the_run_continues(location):
    clock = Clock()
    with record_run(location, "lake", clock=clock) as record:
        record.update_progress(DONE)
        assert records(location)[0].records_in is None
        clock.now_ms += PROGRESS_INTERVAL_MS
        record.update_progress(DONE)
        (run,) = records(location)
        assert (run.outcome, run.records_in, run.seconds) == (Outcome.RUNNING, 33, 60)


class LostLocation(MemoryLocation):
    def open(self):
        raise StoreUnavailableError("no bucket")


def test_run_succeeds_if_the_record_cannot_be_written():
    with record_run(LostLocation(), "lake") as record:
        record.set_summary(DONE)
    assert record.run.outcome is Outcome.SUCCEEDED


def test_no_record_is_written_without_a_location():
    with record_run(None, "mirror") as record:
        record.set_summary(DONE)
    assert record.run.outcome is Outcome.SUCCEEDED


def test_scrub_recognizes_run_records(location):
    with record_run(location, "lake"):
        pass
    with location.open() as store:
        assert scrub(location, store).findings == ()
        store.put("default/_jobs/lake/mine.json", [b"{}"])
        result = kinds(scrub(location, store))
    assert list(result) == [(FindingKind.UNKNOWN, "default/_jobs/lake/mine.json")]


def test_record_of_a_report_has_the_cost_of_topics(location):
    gb = 10**9
    report = build_report(
        usage_of(
            topic="small",
            segments=1,
            segment_bytes=gb,
            records=5,
            newest_ms=NOW_MS - 1,
            oldest_ms=NOW_MS - 1,
            days={TODAY: gb},
        ),
        usage_of(
            topic="large",
            segments=3,
            segment_bytes=3 * gb,
            records=9,
            newest_ms=NOW_MS,
            oldest_ms=NOW_MS - 1,
            days={TODAY: 3 * gb},
        ),
    )
    with record_run(location, "report") as record:
        record.set_totals(*run_totals(report), problems=report.damaged)
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
