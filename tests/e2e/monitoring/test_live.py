"""A real Prometheus that scrapes a live broker evaluates all panels and alerts."""

import math
import re

import pytest

from e2e.monitoring.environment import CLUSTER, GROUP, JOB, NAMESPACE, TOPIC
from generators.monitoring.alerts import GROUPS
from generators.monitoring.dashboards import DASHBOARDS
from services.for_each import for_each
from services.prometheus import PrometheusError
from services.shell import Shell
from services.waiting import wait_until
from unit.deploy.promql_checks import SERIES, TARGET_LABELS

pytestmark = pytest.mark.timeout(180)  # The first run installs Prometheus.

SELECTED = {"namespace": NAMESPACE, "cluster": CLUSTER, "topic": ".*", "group": ".*", "job": ".*"}
"""The values of dashboard variables."""
LABELS_OF_ALL_TARGETS = TARGET_LABELS | {"__name__", "instance", "job"}

QUERIES = [
    query for dashboard in DASHBOARDS for panel in dashboard.panels() for query in panel.queries
]
VARIABLES = [variable for dashboard in DASHBOARDS for variable in dashboard.variables]
ALERTS = [alert for group in GROUPS for alert in group.alerts]
every_query = for_each(QUERIES, lambda query: query.expression)
every_alert = for_each(ALERTS, lambda alert: alert.name)


def fill_in(expression):
    return re.sub(r"\$(\w+)", lambda match: SELECTED[match[1]], expression)


def numbers(result):
    return [value for each in result if not math.isnan(value := float(each["value"][1]))]


def wait_for_data(live, expression):
    """Wait until an expression has a value that is not NaN."""
    wait_until(
        lambda: numbers(live.prometheus.query(expression)),
        f"data of {expression}",
        seen=lambda: live.prometheus.query(expression),
    )


@every_query
def test_panel_query_returns_data(query, live):
    expression = fill_in(query.expression)
    if query.may_be_empty:
        live.prometheus.query(expression)
    else:
        wait_for_data(live, expression)


@every_query
def test_legend_labels_exist(query, live):
    named = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
    for each in live.prometheus.query(fill_in(query.expression)):
        assert named <= each["metric"].keys()


@for_each(VARIABLES)
def test_variable_has_values(variable, live):
    [(selector, label)] = re.findall(r"label_values\((.*), (\w+)\)", variable.values)
    expected = {
        "namespace": NAMESPACE,
        "cluster": CLUSTER,
        "topic": TOPIC,
        "group": GROUP,
        "job": JOB,
    }

    def values():
        return {each[label] for each in live.prometheus.series(fill_in(selector))}

    wait_until(lambda: expected[label] in values(), f"{expected[label]} in {label}", seen=values)


@every_alert
def test_measured_series_of_an_alert_exist(alert, live):
    if alert.may_be_empty:
        live.prometheus.query(alert.measured)
    else:
        wait_for_data(live, alert.measured)


@every_alert
def test_no_alert_fires_in_a_healthy_system(alert, live):
    """Short lags are ignored: it waits until the condition is false."""
    wait_until(
        lambda: not live.prometheus.query(alert.expression),
        f"{alert.name} not to fire",
        seen=lambda: live.prometheus.query(alert.expression),
    )


def test_scraped_series_equal_the_documented_ones(live):
    wait_for_data(live, "kafscale_consumer_lag")
    scraped = live.prometheus.series('{__name__=~"kafscale_.+"}')
    for each in scraped:
        assert each.keys() - LABELS_OF_ALL_TARGETS <= SERIES[each["__name__"]], each
        assert each.keys() >= SERIES[each["__name__"]], each
    # There were no logins, no throttling, no drains and no transactions, and no client has pushed
    # metrics; there is no TLS, no etcd and no compacted topic.
    missing = SERIES.keys() - {each["__name__"] for each in scraped} - {"up"}
    assert missing <= {
        "kafscale_certificate_expiration_timestamp_seconds",
        "kafscale_client_counted_total",
        "kafscale_client_gauge_samples_total",
        "kafscale_client_gauge_sum_total",
        "kafscale_client_pushes_total",
        "kafscale_compaction_dirty_ratio",
        "kafscale_etcd_database_quota_bytes",
        "kafscale_etcd_database_used_bytes",
        "kafscale_etcd_no_space",
        "kafscale_logins_total",
        "kafscale_throttled_responses_total",
        "kafscale_oldest_transaction_seconds",
        "kafscale_operator_drains_total",
        "kafscale_transactional_ids",
    }


def test_labels_of_series_win_over_labels_of_targets(live):
    """`job` and `namespace` are labels of both, and `honor_labels` is set."""
    [run] = live.prometheus.query("kafscale_pipeline_last_run_success")
    assert run["metric"]["job"] == JOB
    [cluster] = live.prometheus.query("kafscale_operator_brokers_ready")
    assert cluster["metric"]["namespace"] == NAMESPACE
    assert not live.prometheus.series('{exported_job!=""}')


def test_invalid_expression_is_rejected(live):
    """The specification has this expression, which the checklist calls invalid."""
    wrong = "histogram_quantile(0.99, rate(kafscale_s3_latency_seconds_bucket[5m])) by (operation)"
    with pytest.raises(PrometheusError, match="parse error"):
        live.prometheus.query(wrong)


def test_series_of_a_deleted_topic_are_removed(live):
    kafscale = Shell(live.broker.address)
    kafscale("topic", "create", "passing", "-p", "1")
    kafscale.produce("passing", lines=["a", "b"])
    label = 'topic="passing"'
    for name in ("kafscale_produce_bytes_total", "kafscale_stored_bytes"):
        wait_until(lambda name=name: _is_positive(live, name, label), f"{name} of the topic")
    assert label in live.broker.http("/metrics")[1]
    kafscale("topic", "delete", "passing", "--yes")
    wait_until(
        lambda: label not in live.broker.http("/metrics")[1],
        "the series to be gone",
        seen=lambda: [
            line for line in live.broker.http("/metrics")[1].splitlines() if label in line
        ],
    )


def _is_positive(live, name, label):
    """Whether the broker exports a positive value of a series."""
    lines = live.broker.http("/metrics")[1].splitlines()
    matching = [line for line in lines if line.startswith(f"{name}{{") and label in line]
    return any(float(line.rpartition(" ")[2]) > 0 for line in matching)
