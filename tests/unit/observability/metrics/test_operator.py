"""Operator metrics: declarations and scrapes agree."""

import pytest

from kafscale.observability.metrics.operator import (
    OPERATOR_METRICS,
    OperatorMetrics,
    SnapshotMetrics,
)
from unit.observability.scraping import scrape, values

NOW_MS = 1_700_000_000_000
LABELS = ("default", "production")


@pytest.fixture
def metrics():
    return OperatorMetrics(lambda: NOW_MS)


@pytest.fixture
def busy(metrics):
    """Metrics of an operator that has had something of everything."""
    metrics.reconciled("KafscaleCluster", 0.2, succeeded=True)
    metrics.drains["success"] += 1
    cluster = metrics.cluster(*LABELS)
    cluster.etcd_members_ready, cluster.etcd_database_bytes = 3, 20_480
    cluster.brokers_desired, cluster.etcd_members_desired = 3, 3
    snapshots = cluster.snapshots = SnapshotMetrics()
    snapshots.newest_at_ms, snapshots.size_bytes = NOW_MS - 90_500, 4096
    snapshots.succeeded, snapshots.is_accessible, snapshots.duration_seconds = True, False, 1.5
    return metrics


def test_scrape_equals_the_declarations(busy):
    shown = [(family.name, family.type, family.documentation) for family in scrape(busy)]
    declared = [
        (each.name.removesuffix("_total"), each.type, each.meaning) for each in OPERATOR_METRICS
    ]
    assert shown == declared


def test_series_have_the_declared_labels(busy):
    for declared, family in zip(OPERATOR_METRICS, scrape(busy), strict=True):
        assert family.samples, declared.name
        for sample in family.samples:
            assert tuple(name for name in sample.labels if name != "le") == declared.labels


def test_only_counters_end_in_total():
    for declared in OPERATOR_METRICS:
        assert declared.name.endswith("_total") == (declared.type == "counter"), declared.name


def test_snapshots_are_exposed_with_their_age(busy):
    assert values(busy, "kafscale_operator_etcd_snapshot_age_seconds") == {LABELS: 90.5}
    assert values(busy, "kafscale_operator_etcd_snapshot_last_success_timestamp_seconds") == {
        LABELS: 1699999909.5
    }
    assert values(busy, "kafscale_operator_etcd_snapshot_success") == {LABELS: 1}
    assert values(busy, "kafscale_operator_etcd_snapshot_access") == {LABELS: 0}
    assert values(busy, "kafscale_operator_etcd_snapshot_duration_seconds") == {LABELS: 1.5}


def test_unknown_values_are_not_exposed(metrics):
    cluster = metrics.cluster(*LABELS)
    for name in ("etcd_members_ready", "etcd_snapshot_failures_total"):
        assert values(metrics, f"kafscale_operator_{name}") == {}
    cluster.snapshots = SnapshotMetrics()
    for name in ("age_seconds", "size_bytes", "success", "access", "duration_seconds"):
        assert values(metrics, f"kafscale_operator_etcd_snapshot_{name}") == {}
    assert values(metrics, "kafscale_operator_etcd_snapshot_failures_total") == {LABELS: 0}


def test_reconciliations_are_counted_and_timed(metrics):
    metrics.reconciled("KafscaleTopic", 0.2, succeeded=True)
    metrics.reconciled("KafscaleTopic", 2, succeeded=False)
    assert values(metrics, "kafscale_operator_reconcile_total") == {
        ("KafscaleTopic", "success"): 1,
        ("KafscaleTopic", "error"): 1,
    }
    assert values(metrics, "kafscale_operator_reconcile_duration_seconds_sum") == {
        ("KafscaleTopic",): 2.2
    }


def test_metrics_of_a_deleted_cluster_are_dropped(busy):
    assert values(busy, "kafscale_operator_clusters") == {(): 1}
    assert busy.cluster(*LABELS) is busy.cluster(*LABELS)
    busy.forget(*LABELS)
    busy.forget(*LABELS)
    assert values(busy, "kafscale_operator_clusters") == {(): 0}
    assert values(busy, "kafscale_operator_etcd_snapshot_age_seconds") == {}
