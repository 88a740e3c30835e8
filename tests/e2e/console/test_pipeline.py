"""Job records in the API and in Prometheus metrics."""

import asyncio
import time

import pytest

from kafscale.storage.job_runs import JobRun, JobRuns, Outcome, TopicRun
from kafscale.storage.objects.local.store import LocalObjectStore
from services.broker import BrokerProcess
from services.console import ConsoleProcess

pytestmark = pytest.mark.timeout(120)

NOW_MS = time.time_ns() // 1_000_000
MERGED = JobRun(
    job="merge",
    run="0000000a",
    started_at_ms=NOW_MS - 60_000,
    outcome=Outcome.SUCCEEDED,
    updated_at_ms=NOW_MS - 50_000,
    ended_at_ms=NOW_MS - 50_000,
    topics=("orders",),
    records_in=10,
    records_out=10,
    size_bytes=100,
    newest_timestamp_ms=NOW_MS - 70_000,
    by_topic={"orders": TopicRun(records_in=10, newest_timestamp_ms=NOW_MS - 70_000)},
    details={"merged": 3},
)
FAILED = JobRun(
    job="merge",
    run="0000000b",
    started_at_ms=NOW_MS - 10_000,
    outcome=Outcome.FAILED,
    updated_at_ms=NOW_MS - 9_000,
    ended_at_ms=NOW_MS - 9_000,
    error="no broker responds",
    topics=("orders",),
)
REPORTED = JobRun(
    job="report",
    run="0000000c",
    started_at_ms=NOW_MS - 5_000,
    outcome=Outcome.SUCCEEDED,
    updated_at_ms=NOW_MS - 4_000,
    ended_at_ms=NOW_MS - 4_000,
    by_topic={
        "orders": TopicRun(records_in=10, size_bytes=100, details={"dollarsPerDay": 0.5}),
        "clicks": TopicRun(records_in=20, size_bytes=900, details={"dollarsPerDay": 1.5}),
    },
    details={"now.s3DollarsPerDay": 2.25},
)


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pipeline")
    with BrokerProcess(directory) as broker:
        store = LocalObjectStore(broker.data / "objects", fsync=False, shared=True)
        for run in (MERGED, FAILED, REPORTED):
            asyncio.run(JobRuns(store, "default").write(run))
        with ConsoleProcess(directory, broker) as console:
            yield console


def test_jobs_have_runs_newest_first(console):
    pipeline = console.client().get("/pipeline")
    assert pipeline["problem"] is None
    merge, report = pipeline["jobs"]
    assert (merge["job"], report["job"]) == ("merge", "report")
    assert [run["outcome"] for run in merge["runs"]] == ["failed", "succeeded"]
    assert merge["last"]["error"] == "no broker responds"
    assert merge["successRate"] == 0.5
    assert merge["freshnessMs"] >= 70_000
    assert merge["runs"][1]["details"] == {"merged": 3}


def test_cost_report_is_sorted_by_cost(console):
    cost = console.client().get("/pipeline")["cost"]
    assert cost["totalPerDay"] == 2.25
    assert [(topic["topic"], topic["costPerDay"]) for topic in cost["topics"]] == [
        ("clicks", 1.5),
        ("orders", 0.5),
    ]


def test_metrics_have_the_last_run_of_each_job(console):
    response = console.anonymous_client().request_path("GET", "/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = response.body.decode().splitlines()
    assert 'kafscale_pipeline_last_run_success{job="merge",topic="orders"} 0' in lines
    assert 'kafscale_pipeline_last_run_success{job="report",topic="clicks"} 1' in lines
    fresh = [line for line in lines if line.startswith("kafscale_pipeline_freshness_seconds{")]
    assert float(fresh[0].rpartition(" ")[2]) >= 70


def test_no_runs_is_no_problem(tmp_path, start_broker):
    with ConsoleProcess(tmp_path, start_broker()) as console:
        pipeline = console.client().get("/pipeline")
        assert pipeline == {"jobs": [], "cost": None, "problem": None}
        assert console.anonymous_client().request_path("GET", "/metrics").status == 200


def test_missing_directory_is_reported(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker, data_dir=str(tmp_path / "nothing")) as console:
        assert "KAFSCALE_DATA_DIR" in console.client().get("/pipeline")["problem"]


def test_memory_store_is_reported(tmp_path, broker):
    with ConsoleProcess(tmp_path, broker, use_memory_s3="true") as console:
        assert "memory" in console.client().get("/pipeline")["problem"]
        assert console.anonymous_client().request_path("GET", "/metrics").status == 200
