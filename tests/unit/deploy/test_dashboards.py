"""Dashboards show series that there are, and the panels that the specification has."""

import re

import pytest

from unit.deploy import series
from unit.deploy.chart import dashboards

BOARDS = dashboards()
PANELS = [
    pytest.param(panel, id=f"{name}: {panel['title']}")
    for name, board in BOARDS.items()
    for panel in board["panels"]
    if panel["type"] != "row"
]
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


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_asks_for_what_there_is(panel):
    for target in panel["targets"]:
        assert list(series.selected(target["expr"]))
        assert series.complaints(target["expr"]) == []


@pytest.mark.parametrize("panel", PANELS)
def test_a_legend_names_labels_that_are_left(panel):
    for target in panel["targets"]:
        named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert named <= series.labels_left(target["expr"])


@pytest.mark.parametrize("panel", PANELS)
def test_a_quantile_is_of_what_was_summed_inside_of_it(panel):
    for target in panel["targets"]:
        expression = target["expr"]
        if "histogram_quantile" in expression:
            assert re.fullmatch(r"histogram_quantile\(.*by \(le, \w+\)\)", expression)


@pytest.mark.parametrize("title", SPECIFIED)
def test_a_panel_of_the_specification_is_there(title):
    [panel] = [panel for panel in BOARDS["cluster"]["panels"] if panel["title"] == title]
    kind, expression = SPECIFIED[title]
    assert panel["type"] == kind
    assert [target["expr"] for target in panel["targets"]] == [expression % OF_CLUSTER]


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_what_it_shows_in_which_unit_and_where_it_becomes_bad(panel):
    assert panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    steps = defaults.get("thresholds", {"steps": [{"value": None}]})["steps"]
    bounds = [step["value"] for step in steps]
    assert bounds[0] is None
    assert bounds[1:] == sorted(set(bounds[1:]))


@pytest.mark.parametrize("panel", PANELS)
def test_a_link_leads_to_a_dashboard_that_there_is(panel):
    addresses = {f"/d/{board['uid']}" for board in BOARDS.values()}
    for link in panel.get("links", ()):
        assert link["url"].partition("?")[0] in addresses


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_an_expression_names_variables_that_there_are(board):
    known = {variable["name"] for variable in board["templating"]["list"]}
    asked = {
        name
        for panel in board["panels"]
        for target in panel.get("targets", ())
        for name in re.findall(r"\$(\w+)", target["expr"])
    }
    assert asked <= known


@pytest.mark.parametrize("variable", ["topic", "group", "job"])
def test_topics_groups_and_jobs_can_be_chosen(variable):
    chosen = {each["name"] for board in BOARDS.values() for each in board["templating"]["list"]}
    assert variable in chosen


def test_no_two_dashboards_have_one_address_and_all_lead_to_each_other():
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS)
    for name, board in BOARDS.items():
        assert re.fullmatch(r"[a-z0-9-]+", name), "objects in Kubernetes are called after it"
        assert [link["tags"] for link in board["links"]] == [board["tags"]]


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_a_dashboard_can_be_told_from_others(board):
    assert board["title"]
    assert board["uid"]
    ids = [panel["id"] for panel in board["panels"]]
    assert ids == list(range(1, len(ids) + 1))
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            assert series.complaints(variable["query"]) == []


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_no_panel_lies_on_another(board):
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
