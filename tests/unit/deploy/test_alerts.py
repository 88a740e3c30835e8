"""Alerts use existing series, and have a severity, a summary and a runbook section."""

import re

from generators.monitoring.alerts import GROUPS
from kafscale.config.model import SETTINGS
from kafscale.observability.metrics.counters import StoreHealth
from kafscale.operator.spec.cluster import ManagedEtcdSpec, SnapshotsSpec
from kafscale.text.units import GIB
from services.for_each import for_each
from unit.deploy import promql_checks
from unit.deploy.chart import CHART, read

RULES = [rule for group in read("files/alerts.yaml")["groups"] for rule in group["rules"]]
BY_NAME = {rule["alert"]: rule for rule in RULES}
ALERTS = {alert.name: alert for group in GROUPS for alert in group.alerts}
REQUIRED = {
    "KafscaleBrokerDown",
    "KafscaleBrokerNotServing",
    "KafscaleProduceErrors",
    "KafscaleS3Unavailable",
    "KafscaleS3Degraded",
    "KafscaleBufferNearlyFull",
    "KafscaleWalBacklog",
    "KafscaleConsumerLagGrowing",
    "KafscaleEtcdMemberDown",
    "KafscaleSnapshotStale",
    "KafscaleSnapshotFailed",
    "KafscaleSnapshotAccess",
    "KafscaleOperatorNotLeading",
    "KafscaleReconcileErrors",
    "KafscaleHandshakesFail",
    "KafscaleLoginsFail",
    "KafscalePipelineFailed",
    "KafscalePipelineStale",
    "KafscalePipelineNotRunning",
}
"""Alerts that the specification requires."""

every_rule = for_each(RULES, lambda rule: rule["alert"])


@every_rule
def test_rule_uses_existing_series(rule):
    assert list(promql_checks.selectors(rule["expr"]))
    assert promql_checks.problems(rule["expr"]) == []


@every_rule
def test_rule_has_severity_duration_and_annotations(rule):
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert re.fullmatch(r"\d+m", rule.get("for", "0m"))
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"].endswith(".")


@every_rule
def test_rule_links_to_its_runbook_section(rule):
    anchor = f"docs/operations/runbook.md#{rule['alert'].lower()}"
    assert rule["annotations"]["runbook_url"] == anchor


@every_rule
def test_summary_uses_remaining_labels(rule):
    named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert named <= promql_checks.remaining_labels(ALERTS[rule["alert"]].measured)


@every_rule
def test_brackets_match(rule):
    for one, other in ("()", "[]", "{}"):
        assert rule["expr"].count(one) == rule["expr"].count(other)


def test_names_are_unique():
    assert len(BY_NAME) == len(RULES)


def test_required_alerts_exist():
    assert BY_NAME.keys() >= REQUIRED


def test_bucket_states_exist():
    states = {state for rule in RULES for state in re.findall(r'state="(\w+)"', rule["expr"])}
    assert states == set(StoreHealth.STATES) - {"healthy"}


def test_status_values_exist():
    values = {
        value
        for rule in RULES
        for value in re.findall(r'\b(?:status|result)="(\w+)"', rule["expr"])
    }
    assert values == {"error", "success"}


def test_limits_match_the_default_settings():
    defaults = {setting.path: setting.default for setting in SETTINGS}
    buffer = defaults["storage.maxBufferBytes"]
    assert BY_NAME["KafscaleBufferNearlyFull"]["expr"].endswith(f"> 0.8 * {buffer}")
    assert ManagedEtcdSpec().quota == "4Gi"
    assert BY_NAME["KafscaleEtcdDatabaseLarge"]["expr"].endswith(f"> 0.8 * {4 * GIB}")
    stale = SnapshotsSpec().stale_after_seconds
    assert BY_NAME["KafscaleSnapshotStale"]["expr"].endswith(f"> {stale}")
    assert defaults["storage.maxSegmentAgeMs"] < 30 * 60_000
    assert "[30m]" in BY_NAME["KafscaleWalBacklog"]["expr"]


def test_prometheus_templates_are_not_evaluated_by_helm():
    template = (CHART / "templates" / "monitoring" / "alerts.yaml").read_text()
    assert "tpl" not in template
