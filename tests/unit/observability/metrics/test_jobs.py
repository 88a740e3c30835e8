"""The pipeline's metrics: what is declared is emitted, and what is emitted is declared."""

from dataclasses import replace

import pytest

from kafscale.observability.metrics import docs
from kafscale.observability.metrics.all_series import METRICS
from kafscale.observability.metrics.jobs import (
    PIPELINE_METRICS,
    RUNS_MAX,
    LastRun,
    PipelineStatus,
    exposition,
)
from unit.observability.scraping import scrape, values

NOW_MS = 1_700_000_000_000
PLACE = ("lake", "orders")
RUN = LastRun(
    job="lake",
    topic="orders",
    ended_at_ms=NOW_MS - 60_000,
    succeeded=True,
    duration_seconds=12.5,
    records=1000,
    newest_record_at_ms=NOW_MS - 90_500,
)


class Told:
    """What tells of some runs, as other metrics are told."""

    def __init__(self, *runs: LastRun) -> None:
        self.figures = PipelineStatus.of(NOW_MS, runs)

    def exposition(self) -> bytes:
        return exposition(self.figures)


def test_a_scrape_shows_exactly_what_is_declared():
    shown = [(family.name, family.type, family.documentation) for family in scrape(Told(RUN))]
    assert shown == [(each.name, each.type, each.meaning) for each in PIPELINE_METRICS]
    for family in scrape(Told(RUN)):
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
def test_a_run_is_told(name, value):
    assert values(Told(RUN), f"kafscale_pipeline_{name}") == {PLACE: value}


def test_a_run_that_failed_is_told_as_such():
    failed = replace(RUN, succeeded=False)
    assert values(Told(failed), "kafscale_pipeline_last_run_success") == {PLACE: 0}


def test_what_is_not_known_is_not_told():
    told = Told(replace(RUN, newest_record_at_ms=None))
    assert values(told, "kafscale_pipeline_freshness_seconds") == {}


def test_records_from_the_future_are_fresh():
    told = Told(replace(RUN, newest_record_at_ms=NOW_MS + 5000))
    assert values(told, "kafscale_pipeline_freshness_seconds") == {PLACE: 0}


def test_of_each_job_and_topic_the_newest_run_is_told():
    older = replace(RUN, ended_at_ms=RUN.ended_at_ms - 1, records=1)
    for runs in ((older, RUN), (RUN, older)):
        assert values(Told(*runs), "kafscale_pipeline_last_run_records") == {PLACE: 1000}


def test_however_many_there_are_the_newest_are_told():
    runs = [
        replace(RUN, topic=f"topic-{number}", ended_at_ms=number) for number in range(RUNS_MAX + 5)
    ]
    told = values(Told(*runs), "kafscale_pipeline_last_run_success")
    assert len(told) == RUNS_MAX
    assert ("lake", "topic-4") not in told
    assert ("lake", "topic-5") in told


def test_the_page_names_every_metric():
    page = docs.page()
    for declared in PIPELINE_METRICS:
        assert f"| `{declared.name}` | gauge | `job`, `topic` | {declared.meaning} |\n" in page


def test_no_two_metrics_have_one_name():
    assert len({declared.name for declared in METRICS}) == len(METRICS)
