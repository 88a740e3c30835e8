"""promtool accepts the rules, and alerts fire when they should and not before."""

from dataclasses import dataclass

import pytest
import yaml

from generators.monitoring.alerts import GROUPS
from services.prometheus import promtool
from unit.deploy.chart import CHART, ROOT

pytestmark = pytest.mark.timeout(180)  # The first run installs Prometheus.

RULES = (CHART / "files" / "alerts.yaml").read_text()
ALERTS = {alert.name: alert for group in GROUPS for alert in group.alerts}
CLUSTER = {"namespace": "shop", "cluster": "production"}
BROKER = CLUSTER | {"pod": "production-broker-0"}
BROKER_LABELS = 'namespace="shop", cluster="production", pod="production-broker-0"'
PRODUCED = "kafscale_produce_requests_total"
LAST_RUN = "kafscale_pipeline_last_run_timestamp_seconds"
CLUSTER_LABELS = 'namespace="shop", cluster="production"'
JOB_LABELS = 'job="lake", topic="orders"'
LAG_LABELS = f'{CLUSTER_LABELS}, group="billing", topic="orders", partition="0"'


@dataclass(frozen=True)
class Case:
    """Input series, and when an alert fires for them."""

    alert: str
    series: dict[str, str]
    quiet_at: str
    """When it does not fire yet, although the problem may have started."""
    fires_at: str
    labels: dict[str, str]
    summary: str
    interval: str = "1m"
    """Of samples and evaluations; longer for alerts about days."""


CASES = [
    Case(
        "KafscaleBrokerDown",
        {'up{namespace="shop", pod="a-0", service="a-broker-headless"}': "1x4 0x20"},
        "9m",
        "11m",
        {"namespace": "shop", "pod": "a-0", "service": "a-broker-headless"},
        "Broker a-0 in shop is down.",
    ),
    Case(
        "KafscaleBrokerNotServing",
        {f"kafscale_lease_valid{{{BROKER_LABELS}}}": "1x4 0x20"},
        "6m",
        "8m",
        BROKER,
        "Broker production-broker-0 of shop/production is running, but has no valid etcd lease.",
    ),
    Case(
        "KafscaleNoController",
        {f"kafscale_controller{{{BROKER_LABELS}}}": "1x4 0x20"},
        "9m",
        "11m",
        CLUSTER,
        "shop/production has 0 controllers, expected 1.",
    ),
    Case(
        "KafscaleS3Unavailable",
        {f'kafscale_s3_health_state{{{BROKER_LABELS}, state="unavailable"}}': "0x4 1x20"},
        "5m",
        "7m",
        CLUSTER,
        "The bucket of shop/production is unavailable, and brokers reject requests.",
    ),
    Case(
        "KafscaleBufferNearlyFull",
        {f"kafscale_unflushed_bytes{{{BROKER_LABELS}}}": f"{50 * 2**20}x4 {56 * 2**20}x20"},
        "6m",
        "8m",
        BROKER,
        "Broker production-broker-0 of shop/production has 56MiB of unflushed records.",
    ),
    Case(
        "KafscaleWalBacklog",  # A broker that has just started is not late.
        {
            f"kafscale_wal_objects{{{BROKER_LABELS}}}": "5x60",
            f"kafscale_segments_rolled_total{{{BROKER_LABELS}}}": "0x60",
            f"kafscale_broker_uptime_seconds{{{BROKER_LABELS}}}": "0+60x60",
        },
        "30m",
        "40m",
        BROKER,
        "Broker production-broker-0 of shop/production has rolled no segments for 30 minutes.",
    ),
    Case(
        "KafscaleProduceErrors",
        {
            f'{PRODUCED}{{{CLUSTER_LABELS}, topic="orders", status="success"}}': "0+90x40",
            f'{PRODUCED}{{{CLUSTER_LABELS}, topic="orders", status="error"}}': "0x10 0+10x30",
        },
        "12m",
        "25m",
        CLUSTER | {"topic": "orders"},
        "10% of produce requests to orders of shop/production fail.",
    ),
    Case(
        "KafscaleConsumerLagGrowing",  # A shrinking lag does not count, however large.
        {f"kafscale_consumer_lag{{{LAG_LABELS}}}": "90000-1000x60 30000+1000x90"},
        "60m",
        "140m",
        CLUSTER | {"group": "billing", "topic": "orders"},
        "Group billing has a growing lag of 109k records in orders of shop/production.",
    ),
    Case(
        "KafscaleEtcdQuorumLost",  # Two of three are a quorum.
        {
            f"kafscale_operator_etcd_members_ready{{{CLUSTER_LABELS}}}": "3x4 2x5 1x20",
            f"kafscale_operator_etcd_members_desired{{{CLUSTER_LABELS}}}": "3x40",
        },
        "9m",
        "13m",
        CLUSTER,
        "The etcd of shop/production has lost its quorum: 1 members are ready.",
    ),
    Case(
        "KafscaleEtcdSpaceLow",
        {
            f"kafscale_etcd_database_used_bytes{{{BROKER_LABELS}}}": "60x4 75x20",
            f"kafscale_etcd_database_quota_bytes{{{BROKER_LABELS}}}": "100x40",
        },
        "9m",
        "11m",
        CLUSTER,
        "The etcd of shop/production has used 75% of its quota.",
    ),
    Case(
        "KafscaleEtcdNoSpace",
        {f"kafscale_etcd_no_space{{{BROKER_LABELS}}}": "0x4 1x20"},
        "5m",
        "7m",
        CLUSTER,
        "The etcd of shop/production rejects all writes (alarm NOSPACE).",
    ),
    Case(
        "KafscaleOperatorDown",
        {'kafscale_operator_leader{namespace="kafscale"}': "1x4 stale"},
        "9m",
        "11m",
        {},
        "The Kafscale operator is down; clusters keep running unattended.",
    ),
    Case(
        "KafscalePipelineFailed",
        {f"kafscale_pipeline_last_run_success{{{JOB_LABELS}}}": "1x4 0x20"},
        "9m",
        "11m",
        {"job": "lake", "topic": "orders"},
        "The last run of job lake of orders failed.",
    ),
    Case(
        "KafscalePipelineStale",  # A topic without new records is not stale.
        {
            f"kafscale_pipeline_freshness_seconds{{{JOB_LABELS}}}": "30000+60x300",
            'kafscale_produce_requests_total{topic="orders", status="success"}': "5x120 5+5x180",
        },
        "100m",
        "160m",
        {"job": "lake", "topic": "orders"},
        "The newest record of job lake of orders is 11h 0m 0s old, although producers write newer "
        "ones.",
    ),
    Case(
        "KafscalePipelineNotRunning",  # It ran every day, then stopped.
        {f"{LAST_RUN}{{{JOB_LABELS}}}": "0x143 86400x143 172800x143 259200x340"},
        "119h",
        "122h",
        {"job": "lake", "topic": "orders"},
        "The last run of job lake of orders ended 2d 2h 0m 0s ago.",
        interval="10m",
    ),
]


def test_rules_are_valid():
    done = promtool("check", "rules", CHART / "files" / "alerts.yaml")
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


def test_example_configuration_is_valid(tmp_path):
    """With the rules beside it, as documented."""
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    (tmp_path / "kafscale-alerts.yaml").write_text(RULES)
    done = promtool("check", "config", configuration)
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def run_case(case, tmp_path, *, fires_early=False):
    """Run a case with promtool."""
    alert = ALERTS[case.alert]
    fired = {
        "exp_labels": {"severity": alert.severity.value, **case.labels},
        "exp_annotations": {
            "summary": case.summary,
            "description": alert.description,
            "runbook_url": alert.runbook,
        },
    }
    early = [fired] if fires_early else []
    rules, tests = tmp_path / "alerts.yaml", tmp_path / "tests.yaml"
    rules.write_text(RULES)
    test = {
        "interval": case.interval,
        "input_series": [{"series": name, "values": each} for name, each in case.series.items()],
        "alert_rule_test": [
            {"eval_time": case.quiet_at, "alertname": case.alert, "exp_alerts": early},
            {"eval_time": case.fires_at, "alertname": case.alert, "exp_alerts": [fired]},
        ],
    }
    file = {"rule_files": [rules.name], "evaluation_interval": case.interval, "tests": [test]}
    tests.write_text(yaml.safe_dump(file))
    return promtool("test", "rules", tests)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_alert_fires_when_it_should_and_not_before(case, tmp_path):
    done = run_case(case, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_reports_a_wrong_expectation(tmp_path):
    """An alert that is expected too early makes promtool fail."""
    done = run_case(CASES[0], tmp_path, fires_early=True)
    assert done.returncode != 0
    assert "FAILED" in done.stdout + done.stderr
