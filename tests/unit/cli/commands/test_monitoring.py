"""`kafscale monitoring`: alerts and dashboards as files."""

import json
from pathlib import Path

import yaml

from generators.monitoring.dashboards import DASHBOARDS
from unit.deploy.chart import CHART

FILES = CHART / "files"


def test_alerts_prints_the_rules(kafscale):
    result = kafscale("monitoring", "alerts")
    assert result.exit_code == 0
    assert result.stdout == (FILES / "alerts.yaml").read_text()


def test_alerts_link_to_the_given_runbook(kafscale):
    printed = kafscale("monitoring", "alerts", "--runbook", "https://example.com/book").stdout
    urls = [
        rule["annotations"]["runbook_url"]
        for group in yaml.safe_load(printed)["groups"]
        for rule in group["rules"]
    ]
    assert urls
    assert all(url.startswith("https://example.com/book#kafscale") for url in urls)


def test_dashboards_are_listed(kafscale):
    listed = kafscale("monitoring", "dashboards").stdout
    for dashboard in DASHBOARDS:
        assert f"{dashboard.name} " in listed
        assert dashboard.description in listed


def test_dashboard_is_printed_as_json(kafscale):
    printed = json.loads(kafscale("monitoring", "dashboards", "topics").stdout)
    assert printed["uid"] == "kafscale-topics"


def test_dashboards_are_written_to_a_directory(kafscale):
    result = kafscale("monitoring", "dashboards", "--to", "a/b")
    assert result.exit_code == 0
    written = {path.name: path.read_text() for path in Path("a/b").iterdir()}
    assert written == {path.name: path.read_text() for path in (FILES / "dashboards").iterdir()}
    assert result.stdout.splitlines() == [f"wrote a/b/{name}" for name in sorted(written)]


def test_single_dashboard_is_written(kafscale):
    kafscale("monitoring", "dashboards", "groups", "--to", ".")
    assert [path.name for path in Path().iterdir()] == ["groups.json"]


def test_unknown_dashboard_is_rejected(kafscale):
    result = kafscale("monitoring", "dashboards", "weather")
    assert result.exit_code == 1
    assert "unknown dashboard 'weather'; the dashboards are cluster, groups" in result.stderr


def test_unwritable_directory_is_reported(kafscale):
    Path("taken").write_text("")
    result = kafscale("monitoring", "dashboards", "--to", "taken")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot write to taken (File exists)")
