"""What is told about a cluster."""

from typing import Any

import pytest

from kafscale.operator.cluster.rollout_plan import Scale, Wait
from kafscale.operator.cluster.status import (
    DEGRADED,
    PENDING,
    PROGRESSING,
    READY,
    SLEEPING,
    Found,
    brokers_condition,
    changed,
    phase,
    status,
)
from kafscale.operator.conditions import FALSE, TRUE, Condition, bad, ok
from kafscale.operator.spec.cluster import Cluster, read_cluster

NOW, BEFORE = "2026-11-16T10:00:00Z", "2026-11-16T09:00:00Z"
WELL = [ok(each, "Fine") for each in ("EtcdReady", "BucketReady", "ConfigValid")]


def cluster(**status: Any) -> Cluster:
    metadata = {"name": "demo", "namespace": "default", "uid": "u", "generation": 7}
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    return read_cluster({"metadata": metadata, "spec": spec, "status": status})


def found(**more: Any) -> Found:
    return Found(**{"conditions": list(WELL), "replicas": 3, "ready_brokers": 3, **more})


def test_all_brokers_serve() -> None:
    told = status(cluster(), found(topic_count=4, broker_count=3), NOW)
    assert told["phase"] == READY
    assert (told["observedGeneration"], told["topicCount"], told["readyBrokers"]) == (7, 4, 3)
    [ready] = [each for each in told["conditions"] if each["type"] == "Ready"]
    assert (ready["status"], ready["lastTransitionTime"]) == (TRUE, NOW)


def test_what_is_not_known_is_not_said() -> None:
    told = status(cluster(), Found(conditions=[bad("EtcdReady", "Forming", "it forms")]), NOW)
    assert told["phase"] == PENDING
    assert {"brokerCount", "readyBrokers", "topicCount", "snapshot"}.isdisjoint(told)
    [ready] = [each for each in told["conditions"] if each["type"] == "Ready"]
    assert ready["message"] == "EtcdReady: it forms"


def test_a_condition_that_stays_keeps_its_time() -> None:
    was = {"type": "Ready", "status": TRUE, "reason": "Ready", "lastTransitionTime": BEFORE}
    told = status(cluster(phase=READY, conditions=[was]), found(), NOW)
    times = {each["type"]: each["lastTransitionTime"] for each in told["conditions"]}
    assert times["Ready"] == BEFORE
    assert times["BrokersReady"] == NOW


@pytest.mark.parametrize(
    ("more", "before", "word"),
    [
        ({}, "", READY),
        ({"step": Scale(3)}, READY, PROGRESSING),
        ({"ready_brokers": 2}, READY, DEGRADED),
        ({"ready_brokers": 2, "step": Wait("b-2 is not ready")}, READY, PROGRESSING),
        ({"ready_brokers": 0}, PENDING, PROGRESSING),
        ({"replicas": None, "ready_brokers": None}, "", PENDING),
        ({"is_asleep": True, "replicas": 0, "ready_brokers": 0}, READY, SLEEPING),
        ({"conditions": [*WELL[:2], bad("ConfigValid", "Refused", "no")]}, READY, DEGRADED),
    ],
)
def test_the_phase(more: dict[str, Any], before: str, word: str) -> None:
    seen = found(**more)
    conditions = [*seen.conditions, *filter(None, [brokers_condition(seen)])]
    assert phase(conditions, seen, before) == word


def test_what_a_missing_broker_waits_for_is_said() -> None:
    told = brokers_condition(found(ready_brokers=2, step=Wait("b-2 is not ready")))
    assert told == bad("BrokersReady", "NotAllReady", "2 of 3 brokers serve; b-2 is not ready")


def test_only_news_are_told() -> None:
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
