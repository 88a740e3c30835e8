"""Metrics of Spark jobs: declarations and scrapes agree."""

from dataclasses import replace

import pytest

from kafscale.observability.metrics.jobs import (
    PIPELINE_METRICS,
    RUNS_MAX,
    LastRun,
    PipelineStatus,
    exposition,
)
from unit.observability.scraping import scrape, values

NOW_MS = 1_700_000_000_000
LABELS = ("lake", "orders")
RUN = LastRun(
    job="lake",
    topic="orders",
    ended_at_ms=NOW_MS - 60_000,
    succeeded=True,
    duration_seconds=12.5,
    records=1000,
    newest_record_at_ms=NOW_MS - 90_500,
)


class JobMetrics:
    """Metrics of some runs, with the interface of other metrics."""

    def __init__(self, *runs: LastRun) -> None:
        self.figures = PipelineStatus.of(NOW_MS, runs)

    def exposition(self) -> bytes:
        return exposition(self.figures)


def test_scrape_equals_the_declarations():
    shown = [(family.name, family.type, family.documentation) for family in scrape(JobMetrics(RUN))]
    assert shown == [(each.name, each.type, each.meaning) for each in PIPELINE_METRICS]
    for family in scrape(JobMetrics(RUN)):
        assert [tuple(sample.labels) for sample in family.samples] == [("job", "topic")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("last_run_timestamp_seconds", NOW_MS / 1000 - 60),
        ("last_run_success", 1),
        ("last_run_duration_seconds", 12.5),
        ("last_run_records", 1000),
        ("freshness_seconds", 90.5),
    ],
)
def test_successful_run_is_exposed(name, value):
    assert values(JobMetrics(RUN), f"kafscale_pipeline_{name}") == {LABELS: value}


def test_failed_run_is_exposed():
    failed = replace(RUN, succeeded=False)
    assert values(JobMetrics(failed), "kafscale_pipeline_last_run_success") == {LABELS: 0}


def test_unknown_values_are_not_exposed():
    metrics = JobMetrics(replace(RUN, newest_record_at_ms=None))
    assert values(metrics, "kafscale_pipeline_freshness_seconds") == {}


def test_records_from_the_future_have_age_zero():
    metrics = JobMetrics(replace(RUN, newest_record_at_ms=NOW_MS + 5000))
    assert values(metrics, "kafscale_pipeline_freshness_seconds") == {LABELS: 0}


def test_newest_run_of_each_job_and_topic_is_exposed():
    older = replace(RUN, ended_at_ms=RUN.ended_at_ms - 1, records=1)
    for runs in ((older, RUN), (RUN, older)):
        assert values(JobMetrics(*runs), "kafscale_pipeline_last_run_records") == {LABELS: 1000}


def test_newest_runs_are_exposed_up_to_the_limit():
    runs = [
        replace(RUN, topic=f"topic-{number}", ended_at_ms=number) for number in range(RUNS_MAX + 5)
    ]
    metrics = values(JobMetrics(*runs), "kafscale_pipeline_last_run_success")
    assert len(metrics) == RUNS_MAX
    assert ("lake", "topic-4") not in metrics
    assert ("lake", "topic-5") in metrics
