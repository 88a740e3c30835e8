"""Tests of a cluster's status."""

from typing import Any

import pytest

from kafscale.operator.cluster.rollout_plan import Scale, Wait
from kafscale.operator.cluster.status import (
    DEGRADED,
    PENDING,
    PROGRESSING,
    READY,
    SLEEPING,
    ObservedCluster,
    brokers_condition,
    changed,
    phase,
    status,
)
from kafscale.operator.spec.cluster import Cluster, read_cluster
from kafscale.operator.spec.status import FALSE, TRUE, Condition, bad, ok

NOW, BEFORE = "2026-11-16T10:00:00Z", "2026-11-16T09:00:00Z"
HEALTHY = [ok(each, "Fine") for each in ("EtcdReady", "BucketReady", "ConfigValid")]


def cluster(**status: Any) -> Cluster:
    metadata = {"name": "demo", "namespace": "default", "uid": "u", "generation": 7}
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    return read_cluster({"metadata": metadata, "spec": spec, "status": status})


def observed(**more: Any) -> ObservedCluster:
    return ObservedCluster(
        **{"conditions": list(HEALTHY), "replicas": 3, "ready_brokers": 3, **more}
    )


def test_ready_if_all_brokers_serve() -> None:
    reported = status(cluster(), observed(topic_count=4, broker_count=3), NOW)
    assert reported["phase"] == READY
    assert (reported["observedGeneration"], reported["topicCount"], reported["readyBrokers"]) == (
        7,
        4,
        3,
    )
    [ready] = [each for each in reported["conditions"] if each["type"] == "Ready"]
    assert (ready["status"], ready["lastTransitionTime"]) == (TRUE, NOW)


def test_unknown_values_are_left_out() -> None:
    reported = status(
        cluster(), ObservedCluster(conditions=[bad("EtcdReady", "Forming", "forming")]), NOW
    )
    assert reported["phase"] == PENDING
    assert {"brokerCount", "readyBrokers", "topicCount", "snapshot"}.isdisjoint(reported)
    [ready] = [each for each in reported["conditions"] if each["type"] == "Ready"]
    assert ready["message"] == "EtcdReady: forming"


def test_unchanged_condition_keeps_its_transition_time() -> None:
    former = {"type": "Ready", "status": TRUE, "reason": "Ready", "lastTransitionTime": BEFORE}
    reported = status(cluster(phase=READY, conditions=[former]), observed(), NOW)
    times = {each["type"]: each["lastTransitionTime"] for each in reported["conditions"]}
    assert times["Ready"] == BEFORE
    assert times["BrokersReady"] == NOW


@pytest.mark.parametrize(
    ("more", "before", "expected"),
    [
        ({}, "", READY),
        ({"step": Scale(3)}, READY, PROGRESSING),
        ({"ready_brokers": 2}, READY, DEGRADED),
        ({"ready_brokers": 2, "step": Wait("b-2 is not ready")}, READY, PROGRESSING),
        ({"ready_brokers": 0}, PENDING, PROGRESSING),
        ({"replicas": None, "ready_brokers": None}, "", PENDING),
        ({"is_scaled_to_zero": True, "replicas": 0, "ready_brokers": 0}, READY, SLEEPING),
        ({"conditions": [*HEALTHY[:2], bad("ConfigValid", "Invalid", "no")]}, READY, DEGRADED),
    ],
)
def test_phase(more: dict[str, Any], before: str, expected: str) -> None:
    state = observed(**more)
    conditions = [*state.conditions, *filter(None, [brokers_condition(state)])]
    assert phase(conditions, state, before) == expected


def test_brokers_condition_names_what_is_waited_for() -> None:
    reported = brokers_condition(observed(ready_brokers=2, step=Wait("b-2 is not ready")))
    assert reported == bad("BrokersReady", "NotAllReady", "2 of 3 brokers serve; b-2 is not ready")


def test_only_changed_conditions_are_reported() -> None:
    def condition(type_: str, value: str) -> dict[str, Any]:
        return {"type": type_, "status": value, "reason": "Why", "message": "what"}

    before = [condition("A", TRUE), condition("B", FALSE), condition("C", FALSE)]
    after = [condition("A", FALSE), condition("B", TRUE), condition("C", FALSE)]
    new = [condition("D", FALSE), condition("E", TRUE)]
    assert changed(before, [*after, *new]) == [
        Condition("A", FALSE, "Why", "what"),
        Condition("B", TRUE, "Why", "what"),
        Condition("D", FALSE, "Why", "what"),
    ]
