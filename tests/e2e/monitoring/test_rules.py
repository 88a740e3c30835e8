"""Prometheus' own judge: rules are well-formed, are raised when they should be, and not before."""

from dataclasses import dataclass

import pytest
import yaml

from kafscale.monitoring.alerts import GROUPS
from kafscale.monitoring.files import alerts_file
from services.prometheus import promtool
from unit.deploy.chart import CHART, ROOT

pytestmark = pytest.mark.timeout(180)  # The first run fetches Prometheus.

ALERTS = {alert.name: alert for group in GROUPS for alert in group.alerts}
PLACE = {"namespace": "shop", "cluster": "production"}
BROKER = PLACE | {"pod": "production-broker-0"}
OF_BROKER = 'namespace="shop", cluster="production", pod="production-broker-0"'
PRODUCED = "kafscale_produce_requests_total"
LAST_RUN = "kafscale_pipeline_last_run_timestamp_seconds"
OF_CLUSTER = 'namespace="shop", cluster="production"'
OF_JOB = 'job="lake", topic="orders"'
OF_LAG = f'{OF_CLUSTER}, group="billing", topic="orders", partition="0"'


@dataclass(frozen=True)
class Case:
    """What Prometheus sees, and when an alert is raised for it."""

    alert: str
    series: dict[str, str]
    quiet_at: str
    """When it is not raised yet, though what it is about may have begun."""
    raised_at: str
    labels: dict[str, str]
    summary: str
    interval: str = "1m"


CASES = [
    Case(
        "KafscaleBrokerDown",
        {'up{namespace="shop", pod="a-0", service="a-broker-headless"}': "1x4 0x20"},
        "9m",
        "11m",
        {"namespace": "shop", "pod": "a-0", "service": "a-broker-headless"},
        "Broker a-0 in shop does not answer.",
    ),
    Case(
        "KafscaleBrokerNotServing",
        {f"kafscale_lease_valid{{{OF_BROKER}}}": "1x4 0x20"},
        "6m",
        "8m",
        BROKER,
        "Broker production-broker-0 of shop/production runs, but etcd does not confirm its lease.",
    ),
    Case(
        "KafscaleNoController",
        {f"kafscale_controller{{{OF_BROKER}}}": "1x4 0x20"},
        "9m",
        "11m",
        PLACE,
        "shop/production has 0 controllers, where there should be one.",
    ),
    Case(
        "KafscaleS3Unavailable",
        {f'kafscale_s3_health_state{{{OF_BROKER}, state="unavailable"}}': "0x4 1x20"},
        "5m",
        "7m",
        PLACE,
        "The bucket of shop/production is unavailable, and clients are refused.",
    ),
    Case(
        "KafscaleBufferNearlyFull",
        {f"kafscale_unflushed_bytes{{{OF_BROKER}}}": f"{50 * 2**20}x4 {56 * 2**20}x20"},
        "6m",
        "8m",
        BROKER,
        "Broker production-broker-0 of shop/production holds 56MiB that are not durable yet.",
    ),
    Case(
        "KafscaleWalBacklog",  # A broker that has just started is not late yet.
        {
            f"kafscale_wal_objects{{{OF_BROKER}}}": "5x60",
            f"kafscale_segments_rolled_total{{{OF_BROKER}}}": "0x60",
            f"kafscale_broker_uptime_seconds{{{OF_BROKER}}}": "0+60x60",
        },
        "30m",
        "40m",
        BROKER,
        "Broker production-broker-0 of shop/production has made no segments of its WAL for half an "
        "hour.",
    ),
    Case(
        "KafscaleProduceErrors",
        {
            f'{PRODUCED}{{{OF_CLUSTER}, topic="orders", status="success"}}': "0+90x40",
            f'{PRODUCED}{{{OF_CLUSTER}, topic="orders", status="error"}}': "0x10 0+10x30",
        },
        "12m",
        "25m",
        PLACE | {"topic": "orders"},
        "Of appends to orders of shop/production, 10% fail.",
    ),
    Case(
        "KafscaleConsumerLagGrowing",  # A lag that only shrinks does not count, however large.
        {f"kafscale_consumer_lag{{{OF_LAG}}}": "90000-1000x60 30000+1000x90"},
        "60m",
        "140m",
        PLACE | {"group": "billing", "topic": "orders"},
        "Group billing is 109k records behind in orders of shop/production, and falls further.",
    ),
    Case(
        "KafscaleEtcdQuorumLost",  # Two of three are a majority.
        {
            f"kafscale_operator_etcd_members_ready{{{OF_CLUSTER}}}": "3x4 2x5 1x20",
            f"kafscale_operator_etcd_members_wanted{{{OF_CLUSTER}}}": "3x40",
        },
        "9m",
        "13m",
        PLACE,
        "The etcd of shop/production has lost its majority, with 1 members ready.",
    ),
    Case(
        "KafscaleOperatorDown",
        {'kafscale_operator_leader{namespace="kafscale"}': "1x4 stale"},
        "9m",
        "11m",
        {},
        "No operator of Kafscale answers; clusters run on, but nobody looks after them.",
    ),
    Case(
        "KafscalePipelineFailed",
        {f"kafscale_pipeline_last_run_success{{{OF_JOB}}}": "1x4 0x20"},
        "9m",
        "11m",
        {"job": "lake", "topic": "orders"},
        "The last run of lake of orders failed.",
    ),
    Case(
        "KafscalePipelineStale",  # While nobody writes, there is nothing to be late with.
        {
            f"kafscale_pipeline_freshness_seconds{{{OF_JOB}}}": "30000+60x300",
            'kafscale_produce_requests_total{topic="orders", status="success"}': "5x120 5+5x180",
        },
        "100m",
        "160m",
        {"job": "lake", "topic": "orders"},
        "The newest record in lake of orders is 11h 0m 0s old, though newer ones are written.",
    ),
    Case(
        "KafscalePipelineNotRunning",  # It ran every day, until it did not.
        {f"{LAST_RUN}{{{OF_JOB}}}": "0x719 86400x719 172800x719 259200x1700"},
        "119h",
        "122h",
        {"job": "lake", "topic": "orders"},
        "Nobody has run lake of orders for 2d 2h 0m 0s.",
        interval="2m",
    ),
]


def test_the_rules_are_well_formed():
    done = promtool("check", "rules", CHART / "files" / "alerts.yaml")
    assert done.returncode == 0, done.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


def test_the_configuration_to_begin_with_is_well_formed(tmp_path):
    """With the rules beside it, as the page tells to do it."""
    configuration = tmp_path / "prometheus.yml"
    configuration.write_text((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    (tmp_path / "kafscale-alerts.yaml").write_text(alerts_file())
    done = promtool("check", "config", configuration)
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def told(case, tmp_path, *, is_raised_early=False):
    """What promtool says of an alert, judged by a case."""
    alert = ALERTS[case.alert]
    raised = {
        "exp_labels": {"severity": alert.severity.value, **case.labels},
        "exp_annotations": {
            "summary": case.summary,
            "description": alert.description,
            "runbook_url": alert.runbook,
        },
    }
    early = [raised] if is_raised_early else []
    rules, tests = tmp_path / "alerts.yaml", tmp_path / "tests.yaml"
    rules.write_text(alerts_file())
    test = {
        "interval": case.interval,
        "input_series": [{"series": name, "values": each} for name, each in case.series.items()],
        "alert_rule_test": [
            {"eval_time": case.quiet_at, "alertname": case.alert, "exp_alerts": early},
            {"eval_time": case.raised_at, "alertname": case.alert, "exp_alerts": [raised]},
        ],
    }
    tests.write_text(
        yaml.safe_dump({"rule_files": [rules.name], "evaluation_interval": "1m", "tests": [test]})
    )
    return promtool("test", "rules", tests)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_is_raised_when_it_should_be_and_not_before(case, tmp_path):
    done = told(case, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_judge_sees_what_is_wrong(tmp_path):
    """Were an alert expected before its time, that would be told."""
    done = told(CASES[0], tmp_path, is_raised_early=True)
    assert done.returncode != 0
    assert "FAILED" in done.stdout + done.stderr
