"""`kafscale monitoring`: alerts and dashboards as files."""

import json
from pathlib import Path

import yaml

from kafscale.monitoring.dashboards import DASHBOARDS
from kafscale.monitoring.files import alerts_file, dashboard_files, deployed_files


def test_alerts_prints_the_rules(kafscale):
    result = kafscale("monitoring", "alerts")
    assert result.exit_code == 0
    assert result.stdout == alerts_file()


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
    assert written == dashboard_files()
    assert result.stdout.splitlines() == [f"wrote a/b/{name}" for name in dashboard_files()]


def test_single_dashboard_is_written(kafscale):
    kafscale("monitoring", "dashboards", "groups", "--to", ".")
    assert [path.name for path in Path().iterdir()] == ["groups.json"]


def test_unknown_dashboard_is_rejected(kafscale):
    result = kafscale("monitoring", "dashboards", "weather")
    assert result.exit_code == 1
    assert "unknown dashboard 'weather'; the dashboards are cluster, topics" in result.stderr


def test_unwritable_directory_is_reported(kafscale):
    Path("taken").write_text("")
    result = kafscale("monitoring", "dashboards", "--to", "taken")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot write to taken (File exists)")


def test_docs_generate_writes_alerts_and_dashboards(kafscale):
    Path("docs").mkdir()
    Path("deploy").mkdir()
    written = kafscale("docs", "generate").stdout
    for name, text in deployed_files().items():
        assert Path("deploy", name).read_text() == text
        assert f"wrote deploy/{name}\n" in written
    alerts = Path("deploy/helm/kafscale/files/alerts.yaml")
    alerts.write_text("old")
    result = kafscale("docs", "generate", "--check")
    assert (result.exit_code, result.stderr) == (1, f"error: {alerts} is out of date\n")
