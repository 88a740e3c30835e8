"""All metrics of the operator.

Values are plain numbers, read at scrape time; the numbers of a deleted cluster are dropped. The
application serves `/metrics` over HTTP.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from kafscale.observability.metrics.histogram import Histogram
from kafscale.observability.metrics.metric import Metric, Series

RECONCILE_SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)


class SnapshotMetrics:
    """The etcd snapshots of a cluster."""

    __slots__ = (
        "duration_seconds",
        "failures",
        "is_accessible",
        "newest_at_ms",
        "size_bytes",
        "succeeded",
    )

    def __init__(self) -> None:
        self.newest_at_ms: int | None = None
        self.size_bytes = 0
        self.succeeded: bool | None = None
        """The result of the last attempt; None before the first."""
        self.is_accessible: bool | None = None
        """Whether the bucket is writable; None before the first check."""
        self.failures = 0
        self.duration_seconds: float | None = None

    def fail(self) -> None:
        """Count a failed attempt."""
        self.succeeded = False
        self.failures += 1


class ClusterMetrics:
    __slots__ = (
        "brokers_desired",
        "brokers_ready",
        "etcd_database_bytes",
        "etcd_members_desired",
        "etcd_members_ready",
        "snapshots",
        "topics",
    )

    def __init__(self) -> None:
        self.brokers_ready = 0
        self.brokers_desired: int | None = None
        """None if unknown; 0 while the cluster is scaled to zero."""
        self.topics = 0
        self.etcd_members_ready: int | None = None
        """None for an external etcd."""
        self.etcd_members_desired: int | None = None
        self.etcd_database_bytes: int | None = None
        self.snapshots: SnapshotMetrics | None = None
        """None without snapshots."""


class OperatorMetrics:
    """The metrics of one operator; instances are independent."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` returns milliseconds."""
        self.clock: Final = clock
        self.clusters: dict[tuple[str, str], ClusterMetrics] = {}
        self.is_leader = False
        self.rollouts = 0
        self.drains: Counter[str] = Counter()
        self._reconciles: Counter[tuple[str, str]] = Counter()
        self._reconcile_seconds: dict[str, Histogram] = {}

    def cluster(self, namespace: str, name: str) -> ClusterMetrics:
        """The numbers of a cluster, created on first use."""
        return self.clusters.setdefault((namespace, name), ClusterMetrics())

    def forget(self, namespace: str, name: str) -> None:
        """Drop the numbers of a deleted cluster."""
        self.clusters.pop((namespace, name), None)

    def reconciled(self, kind: str, seconds: float, *, succeeded: bool) -> None:
        """Count a reconciliation."""
        self._reconciles[kind, "success" if succeeded else "error"] += 1
        histogram = self._reconcile_seconds.setdefault(kind, Histogram(RECONCILE_SECONDS))
        histogram.observe(seconds)

    def reconciles(self) -> Series:
        return list(self._reconciles.items())

    def reconcile_seconds(self) -> Series:
        return [((kind,), histogram) for kind, histogram in self._reconcile_seconds.items()]

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format, as served at `/metrics`."""
        return "".join(each.render(self) for each in OPERATOR_METRICS).encode()


OperatorMetric = Metric[OperatorMetrics]


def _cluster(
    name: str, meaning: str, read: Callable[[ClusterMetrics], float | None], kind: str = "gauge"
) -> OperatorMetric:
    def series(metrics: OperatorMetrics) -> Series:
        for labels, figures in metrics.clusters.items():
            value = read(figures)
            if value is not None:
                yield labels, value

    return Metric(name, kind, ("namespace", "cluster"), meaning, series)


def _snapshot(
    name: str, meaning: str, read: Callable[[SnapshotMetrics], float | None], kind: str = "gauge"
) -> OperatorMetric:
    return _cluster(
        f"kafscale_operator_etcd_snapshot_{name}",
        meaning,
        lambda cluster: read(cluster.snapshots) if cluster.snapshots else None,
        kind,
    )


def _ages(metrics: OperatorMetrics) -> Series:
    for labels, figures in metrics.clusters.items():
        if figures.snapshots and figures.snapshots.newest_at_ms is not None:
            yield labels, (metrics.clock() - figures.snapshots.newest_at_ms) / 1000


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)


OPERATOR_METRICS: Final[tuple[OperatorMetric, ...]] = (
    Metric(
        "kafscale_operator_leader",
        "gauge",
        (),
        "1 on the leader, 0 on standby replicas.",
        lambda metrics: [((), int(metrics.is_leader))],
    ),
    Metric(
        "kafscale_operator_reconcile_total",
        "counter",
        ("kind", "result"),
        "Reconciliations; `result` is `success` or `error`.",
        OperatorMetrics.reconciles,
    ),
    Metric(
        "kafscale_operator_reconcile_duration_seconds",
        "histogram",
        ("kind",),
        "Duration of reconciliations.",
        OperatorMetrics.reconcile_seconds,
    ),
    Metric(
        "kafscale_operator_clusters",
        "gauge",
        (),
        "Clusters that this operator manages.",
        lambda metrics: [((), len(metrics.clusters))],
    ),
    _cluster(
        "kafscale_operator_brokers_ready",
        "Ready brokers of a cluster.",
        lambda cluster: cluster.brokers_ready,
    ),
    _cluster(
        "kafscale_operator_brokers_desired",
        "Desired brokers of a cluster; 0 while it is scaled to zero.",
        lambda cluster: cluster.brokers_desired,
    ),
    _cluster("kafscale_operator_topics", "Topics of a cluster.", lambda cluster: cluster.topics),
    Metric(
        "kafscale_operator_rollouts_total",
        "counter",
        (),
        "Brokers restarted by rolling updates.",
        lambda metrics: [((), metrics.rollouts)],
    ),
    Metric(
        "kafscale_operator_drains_total",
        "counter",
        ("result",),
        "Drains of brokers, by result.",
        lambda metrics: [((result,), count) for result, count in metrics.drains.items()],
    ),
    _cluster(
        "kafscale_operator_etcd_members_ready",
        "Members of the managed etcd that respond and have a leader.",
        lambda cluster: cluster.etcd_members_ready,
    ),
    _cluster(
        "kafscale_operator_etcd_members_desired",
        "Desired members of the managed etcd.",
        lambda cluster: cluster.etcd_members_desired,
    ),
    _cluster(
        "kafscale_operator_etcd_database_bytes",
        "Size of the largest database of the managed etcd's members.",
        lambda cluster: cluster.etcd_database_bytes,
    ),
    Metric(
        "kafscale_operator_etcd_snapshot_age_seconds",
        "gauge",
        ("namespace", "cluster"),
        "Age of the newest etcd snapshot.",
        _ages,
    ),
    _snapshot(
        "last_success_timestamp_seconds",
        "Time of the newest etcd snapshot, in seconds since 1970.",
        lambda snapshots: _seconds(snapshots.newest_at_ms),
    ),
    _snapshot(
        "size_bytes",
        "Size of the newest etcd snapshot.",
        lambda snapshots: None if snapshots.newest_at_ms is None else snapshots.size_bytes,
    ),
    _snapshot(
        "success",
        "1 if the last due snapshot succeeded, 0 if it failed.",
        lambda snapshots: _flag(snapshots.succeeded),
    ),
    _snapshot(
        "access",
        "1 if the snapshot bucket allows write, read and delete, else 0.",
        lambda snapshots: _flag(snapshots.is_accessible),
    ),
    _snapshot(
        "failures_total",
        "Failed attempts to take or to prune snapshots.",
        lambda snapshots: snapshots.failures,
        "counter",
    ),
    _snapshot(
        "duration_seconds",
        "Duration of the newest snapshot.",
        lambda snapshots: snapshots.duration_seconds,
    ),
)
