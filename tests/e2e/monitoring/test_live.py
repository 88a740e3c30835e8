"""A real Prometheus that scrapes a live Kafscale understands every panel and every alert."""

import math
import re

import pytest

from e2e.monitoring.world import CLUSTER, GROUP, JOB, NAMESPACE, TOPIC
from kafscale.monitoring.alerts import GROUPS
from kafscale.monitoring.dashboards import DASHBOARDS
from kafscale.observability.metrics.all_series import SERIES, TARGET_LABELS
from services.prometheus import PrometheusError
from services.shell import Shell
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(180)  # The first run fetches Prometheus.

CHOSEN = {"namespace": NAMESPACE, "cluster": CLUSTER, "topic": ".*", "group": ".*", "job": ".*"}
"""The values of variables, as Grafana puts them into expressions."""
OF_EVERY_TARGET = TARGET_LABELS | {"__name__", "instance", "job"}

QUERIES = [
    pytest.param(query, id=f"{dashboard.name}: {panel.title} {place}")
    for dashboard in DASHBOARDS
    for panel in dashboard.panels()
    for place, query in enumerate(panel.queries)
]
VARIABLES = [
    pytest.param(variable, id=f"{dashboard.name}: {variable.name}")
    for dashboard in DASHBOARDS
    for variable in dashboard.variables
]
ALERTS = [alert for group in GROUPS for alert in group.alerts]
every_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)


def filled_in(expression):
    return re.sub(r"\$(\w+)", lambda found: CHOSEN[found[1]], expression)


def numbers(found):
    return [value for each in found if not math.isnan(value := float(each["value"][1]))]


def shows(live, expression):
    """Wait until there is a number to be seen; a quantile of nothing is none."""
    wait_until(
        lambda: numbers(live.prometheus.query(expression)),
        f"something to be seen of {expression}",
        seen=lambda: live.prometheus.query(expression),
    )


@pytest.mark.parametrize("query", QUERIES)
def test_a_panel_shows_something(live, query):
    expression = filled_in(query.expression)
    if query.may_be_empty:
        live.prometheus.query(expression)
    else:
        shows(live, expression)


@pytest.mark.parametrize("query", QUERIES)
def test_a_legend_has_labels_that_series_have(live, query):
    named = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
    for each in live.prometheus.query(filled_in(query.expression)):
        assert named <= each["metric"].keys()


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_has_values(live, variable):
    [(selector, label)] = re.findall(r"label_values\((.*), (\w+)\)", variable.values)
    wanted = {
        "namespace": NAMESPACE,
        "cluster": CLUSTER,
        "topic": TOPIC,
        "group": GROUP,
        "job": JOB,
    }

    def values():
        return {each[label] for each in live.prometheus.series(filled_in(selector))}

    wait_until(lambda: wanted[label] in values(), f"{wanted[label]} in {label}", seen=values)


@every_alert
def test_an_alert_measures_something(live, alert):
    if alert.may_be_empty:
        live.prometheus.query(alert.measured)
    else:
        shows(live, alert.measured)


@every_alert
def test_no_alert_is_raised_while_all_is_well(live, alert):
    """Lags come and go within seconds; what lasts is what counts."""
    wait_until(
        lambda: not live.prometheus.query(alert.expression),
        f"{alert.name} not to be raised",
        seen=lambda: live.prometheus.query(alert.expression),
    )


def test_what_is_scraped_is_what_the_catalogue_says(live):
    shows(live, "kafscale_consumer_lag")
    scraped = live.prometheus.series('{__name__=~"kafscale_.+"}')
    for each in scraped:
        assert each.keys() - OF_EVERY_TARGET <= SERIES[each["__name__"]], each
        assert each.keys() >= SERIES[each["__name__"]], each
    # Logins, throttling and drains have not happened.
    silent = SERIES.keys() - {each["__name__"] for each in scraped} - {"up"}
    assert silent <= {
        "kafscale_logins_total",
        "kafscale_throttled_answers_total",
        "kafscale_operator_drains_total",
    }


def test_a_label_of_ours_is_not_renamed(live):
    """`job` and `namespace` are also labels of targets: ours are honoured."""
    [run] = live.prometheus.query("kafscale_pipeline_last_run_success")
    assert run["metric"]["job"] == JOB
    [cluster] = live.prometheus.query("kafscale_operator_brokers_ready")
    assert cluster["metric"]["namespace"] == NAMESPACE
    assert not live.prometheus.series('{exported_job!=""}')


def test_an_expression_that_is_wrong_is_refused(live):
    """The one of the specification, which the checklist calls invalid, is."""
    wrong = "histogram_quantile(0.99, rate(kafscale_s3_latency_seconds_bucket[5m])) by (operation)"
    with pytest.raises(PrometheusError, match="parse error"):
        live.prometheus.query(wrong)


def test_a_topic_that_is_deleted_takes_its_series_with_it(live):
    kafscale = Shell(live.broker.address)
    kafscale("topic", "create", "passing", "-p", "1")
    kafscale.produce("passing", lines=["a", "b"])
    label = 'topic="passing"'
    for name in ("kafscale_produce_bytes_total", "kafscale_stored_bytes"):
        wait_until(lambda name=name: _told(live, name, label), f"{name} of the topic")
    assert label in live.broker.http("/metrics")[1]
    kafscale("topic", "delete", "passing", "--yes")
    wait_until(
        lambda: label not in live.broker.http("/metrics")[1],
        "the series to be gone",
        seen=lambda: [
            line for line in live.broker.http("/metrics")[1].splitlines() if label in line
        ],
    )


def _told(live, name, label):
    """The value of a series, as the broker tells it now."""
    lines = live.broker.http("/metrics")[1].splitlines()
    found = [line for line in lines if line.startswith(f"{name}{{") and label in line]
    return any(float(line.rpartition(" ")[2]) > 0 for line in found)
