"""Pipeline jobs and cost in the pages."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.timeout(60)

NAMES = ("Topic", "clicks", "orders", "payments")


def test_jobs_and_their_runs_are_shown(window):
    page = window.open("/pipeline", "Data pipeline")
    jobs = page.get_by_role("table", name="Jobs", exact=True)
    expect(jobs.get_by_role("link")).to_have_text(["lake", "merge", "report"])
    expect(window.row("Jobs", "merge")).to_contain_text("88%")
    runs = page.get_by_role("table", name="Runs of merge").get_by_role("row")
    failed = runs.filter(has_text="failed")
    expect(failed).to_have_count(1)
    failed.get_by_role("button", name="Show more").click()
    expect(page.get_by_text("the bucket is unreachable")).to_be_visible()


def test_topic_costs_are_sorted_by_cost(window):
    page = window.open("/pipeline", "Data pipeline")
    rows = page.get_by_role("table", name="Cost of topics").get_by_role("row")
    expect(rows).to_have_text([re.compile(f"^{name}") for name in NAMES])
    expect(page.get_by_text("$1.91 per day in total")).to_be_visible()
