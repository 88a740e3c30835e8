"""Tests of the run records that jobs write to the bucket."""

import asyncio
import json
from pathlib import Path

import pytest

from e2e.spark.orders_broker import COUNT, START_MS, call, orders_broker
from kafscale.spark.jobs.lake import job as lake_job
from kafscale.spark.jobs.lake.settings import LakeSettings
from kafscale.spark.jobs.shared.run_record import with_summary
from kafscale.spark.read.location import Location
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.target import TableFormat, Target
from kafscale.storage.job_runs import JobRun, JobRuns, Outcome
from kafscale.storage.objects.local.store import LocalObjectStore
from services.broker import BrokerProcess


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with orders_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def kafscale(broker, spark):
    """Run a command on the shared session; return its exit code."""
    assert spark is not None

    return lambda *arguments: call(broker, *arguments).exit_code


def newest(broker: BrokerProcess, job: str) -> JobRun:
    async def read() -> JobRun:
        store = LocalObjectStore(Path(broker.data) / "objects", shared=True)
        try:
            return (await JobRuns(store, "default").newest(job, limit=1))[0]
        finally:
            await store.close()

    return asyncio.run(read())


def test_lake_run_record_has_the_freshness(kafscale, broker, tmp_path):
    assert kafscale("lake", "orders", "--to", str(tmp_path), "--once") == 0
    run = newest(broker, "lake")
    assert (run.outcome, run.error, run.topics) == (Outcome.SUCCEEDED, "", ("orders",))
    assert run.records_in == COUNT
    assert run.size_bytes > 0
    assert run.newest_timestamp_ms == START_MS + COUNT - 1
    assert run.by_topic["orders"].newest_timestamp_ms == run.newest_timestamp_ms
    assert run.ended_at_ms >= run.started_at_ms


def test_continuous_lake_reports_every_round(spark, broker, tmp_path):
    results = []
    settings = LakeSettings(
        location=Location.parse(str(broker.data)),
        subscription=Subscription.to_topics("orders"),
        is_once=True,
        commit_records_max=COUNT // 4,
    )
    target = Target(table_format=TableFormat.PARQUET, path=str(tmp_path))
    lake_job.run(spark, settings, target, on_progress=results.append)
    counts = [with_summary(JobRun("lake", "0", 0), summary).records_in for summary in results]
    assert counts[0] is None
    assert counts[1:] == sorted(counts[1:])
    assert 0 < counts[1] < COUNT


def test_failed_run_record_has_the_error(kafscale, broker, tmp_path):
    assert kafscale("lake", "absent", "--to", str(tmp_path), "--once") == 1
    run = newest(broker, "lake")
    assert (run.outcome, run.topics) == (Outcome.FAILED, ("absent",))
    assert "absent" in run.error


@pytest.mark.long
def test_other_jobs_write_run_records(kafscale, broker):
    calls = {
        "scrub": (),
        "report": (),
        "merge": ("--control", broker.control_address),
        "compact": ("--control", broker.control_address),
        "replay": ("orders", "replayed"),
        "restore": ("orders", "restored"),
        "mirror": ("--from", broker.address, "--prefix", "mirrored.", "--topic", "orders"),
    }
    codes = {job: kafscale(job, *arguments) for job, arguments in calls.items()}
    assert codes == dict.fromkeys(calls, 0)
    runs = {job: newest(broker, job) for job in calls}
    assert {run.outcome for run in runs.values()} == {Outcome.SUCCEEDED}
    for job in ("replay", "restore", "mirror"):
        assert runs[job].records_out == COUNT, job
        assert runs[job].by_topic["orders"].records_out == COUNT, job
    assert runs["mirror"].newest_timestamp_ms == START_MS + COUNT - 1
    report = runs["report"]
    assert report.by_topic["orders"].records_in == COUNT
    assert report.by_topic["orders"].details["dollarsPerDay"] > 0
    assert json.dumps(report.details)
    assert kafscale("scrub") == 0
    assert newest(broker, "scrub").details["orphans"] == 0, "run records are not orphans"
