"""Alerts ask for series that there are, and say enough to whom they wake."""

import re

import pytest

from kafscale.config.model import SETTINGS
from kafscale.monitoring.alerts import GROUPS
from kafscale.observability.metrics.counters import StoreHealth
from kafscale.operator.spec.cluster import ManagedEtcdSpec, SnapshotsSpec
from kafscale.text.units import GIB
from unit.deploy import series
from unit.deploy.chart import CHART, read

RULES = [rule for group in read("files/alerts.yaml")["groups"] for rule in group["rules"]]
BY_NAME = {rule["alert"]: rule for rule in RULES}
ALERTS = {alert.name: alert for group in GROUPS for alert in group.alerts}
ABOUT = {
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
"""What nobody may be left in the dark about."""

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


@every_rule
def test_a_rule_asks_for_what_there_is(rule):
    assert list(series.selected(rule["expr"]))
    assert series.complaints(rule["expr"]) == []


@every_rule
def test_a_rule_has_all_that_it_takes(rule):
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert re.fullmatch(r"\d+m", rule.get("for", "0m"))
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"].endswith(".")


@every_rule
def test_a_rule_leads_to_its_place_in_the_runbook(rule):
    anchor = f"docs/operations/runbook.md#{rule['alert'].lower()}"
    assert rule["annotations"]["runbook_url"] == anchor


@every_rule
def test_a_summary_names_labels_that_are_left(rule):
    named = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert named <= series.labels_left(ALERTS[rule["alert"]].measured)


@every_rule
def test_brackets_are_in_pairs(rule):
    for one, other in ("()", "[]", "{}"):
        assert rule["expr"].count(one) == rule["expr"].count(other)


def test_no_name_is_used_twice():
    assert len(BY_NAME) == len(RULES)


def test_nobody_is_left_in_the_dark():
    assert BY_NAME.keys() >= ABOUT


def test_states_of_the_bucket_are_those_there_are():
    asked = {state for rule in RULES for state in re.findall(r'state="(\w+)"', rule["expr"])}
    assert asked == set(StoreHealth.STATES) - {"healthy"}


def test_outcomes_are_those_there_are():
    asked = {
        outcome
        for rule in RULES
        for outcome in re.findall(r'\b(?:status|result)="(\w+)"', rule["expr"])
    }
    assert asked == {"error", "success"}


def test_bounds_are_those_of_the_defaults():
    defaults = {setting.path: setting.default for setting in SETTINGS}
    buffer = defaults["storage.maxBufferBytes"]
    assert BY_NAME["KafscaleBufferNearlyFull"]["expr"].endswith(f"> 0.8 * {buffer}")
    assert ManagedEtcdSpec().quota == "4Gi"
    assert BY_NAME["KafscaleEtcdDatabaseLarge"]["expr"].endswith(f"> 0.8 * {4 * GIB}")
    stale = SnapshotsSpec().stale_after_seconds
    assert BY_NAME["KafscaleSnapshotStale"]["expr"].endswith(f"> {stale}")
    assert defaults["storage.maxSegmentAgeMs"] < 30 * 60_000
    assert "[30m]" in BY_NAME["KafscaleWalBacklog"]["expr"]


def test_words_for_prometheus_are_not_taken_for_helms():
    template = (CHART / "templates" / "monitoring" / "alerts.yaml").read_text()
    assert "tpl" not in template
