"""Dashboards use existing series, and have the panels of the specification."""

import re

import pytest

from services.for_each import for_each
from unit.deploy import promql_checks
from unit.deploy.chart import dashboards

BOARDS = dashboards()
PANELS = [panel for board in BOARDS.values() for panel in board["panels"] if panel["type"] != "row"]
every_panel = for_each(PANELS, lambda panel: panel["title"])
OF_CLUSTER = 'namespace="$namespace", cluster="$cluster"'
SPECIFIED = {
    "Produce Throughput": (
        "timeseries",
        'sum(rate(kafscale_produce_requests_total{%s, status="success"}[5m])) by (topic)',
    ),
    "Produce Latency (p99)": (
        "timeseries",
        (
            "histogram_quantile(0.99, "
            "sum(rate(kafscale_produce_latency_seconds_bucket{%s}[5m])) by (le, acks))"
        ),
    ),
    "Consumer Lag": ("timeseries", "sum(kafscale_consumer_lag{%s}) by (group, topic)"),
    "S3 Latency": (
        "timeseries",
        (
            "histogram_quantile(0.99, "
            "sum(rate(kafscale_s3_latency_seconds_bucket{%s}[5m])) by (le, operation))"
        ),
    ),
    "Cache Hit Rate": ("gauge", "avg(kafscale_cache_hit_rate{%s})"),
}


@every_panel
def test_panel_uses_existing_series(panel):
    for target in panel["targets"]:
        assert list(promql_checks.selectors(target["expr"]))
        assert promql_checks.problems(target["expr"]) == []


@every_panel
def test_legend_uses_remaining_labels(panel):
    for target in panel["targets"]:
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert named <= promql_checks.remaining_labels(target["expr"])


@every_panel
def test_quantile_is_computed_from_a_sum_by_le(panel):
    for target in panel["targets"]:
        expression = target["expr"]
        if "histogram_quantile" in expression:
            assert re.fullmatch(r"histogram_quantile\(.*by \(le, \w+\)\)", expression)


@pytest.mark.parametrize("title", SPECIFIED)
def test_panel_of_the_specification_exists(title):
    [panel] = [panel for panel in BOARDS["cluster"]["panels"] if panel["title"] == title]
    kind, expression = SPECIFIED[title]
    assert panel["type"] == kind
    assert [target["expr"] for target in panel["targets"]] == [expression % OF_CLUSTER]


@every_panel
def test_panel_has_description_unit_and_thresholds(panel):
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    steps = defaults.get("thresholds", {"steps": [{"value": None}]})["steps"]
    bounds = [step["value"] for step in steps]
    assert bounds[0] is None
    assert bounds[1:] == sorted(set(bounds[1:]))


@every_panel
def test_link_target_exists(panel):
    addresses = {f"/d/{board['uid']}" for board in BOARDS.values()}
    for link in panel.get("links", ()):
        assert link["url"].partition("?")[0] in addresses


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_variables_of_expressions_exist(board):
    known = {variable["name"] for variable in board["templating"]["list"]}
    used = {
        name
        for panel in board["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"\$(\w+)", target["expr"])
    }
    assert used <= known


@pytest.mark.parametrize("variable", ["topic", "group", "job"])
def test_topics_groups_and_jobs_are_variables(variable):
    names = {each["name"] for board in BOARDS.values() for each in board["templating"]["list"]}
    assert variable in names


def test_dashboards_have_unique_ids_and_link_to_each_other():
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)
    for name, board in BOARDS.items():
        assert re.fullmatch(r"[a-z0-9-]+", name), "it is part of the name of a ConfigMap"
        assert [link["tags"] for link in board["links"]] == [board["tags"]]


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_dashboard_has_title_and_numbered_panels(board):
    assert board["title"]
    assert board["uid"]
    ids = [panel["id"] for panel in board["panels"]]
    assert ids == list(range(1, len(ids) + 1))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            assert promql_checks.problems(variable["query"]) == []


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_panels_do_not_overlap(board):
    used: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        position = panel["gridPos"]
        assert position["x"] + position["w"] <= 24
        cells = {
            (position["x"] + across, position["y"] + down)
            for across in range(position["w"])
            for down in range(position["h"])
        }
        assert not cells & used, panel["title"]
        used |= cells
