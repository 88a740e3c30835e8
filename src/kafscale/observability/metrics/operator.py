"""Every metric of the operator, declared once.

The law is that of `metrics`: what is documented is what a scrape shows. What is moved are plain
numbers, by those who know them; a cluster that is gone takes its own with it. Serving `/metrics`
over HTTP is left to the application.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from kafscale.observability.metrics.declaration import Metric
from kafscale.observability.metrics.histogram import Histogram
from kafscale.observability.metrics.text_format import Series, render

RECONCILE_SECONDS: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)


class SnapshotMetrics:
    """The backups of a cluster's etcd."""

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
        """How the last attempt ended; None before the first."""
        self.is_accessible: bool | None = None
        """Whether the bucket could be written; None before that was tried."""
        self.failures = 0
        self.duration_seconds: float | None = None

    def fail(self) -> None:
        """An attempt has failed."""
        self.succeeded = False
        self.failures += 1


class ClusterMetrics:
    """One cluster."""

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
        """None before that is known; 0 while the cluster sleeps."""
        self.topics = 0
        self.etcd_members_ready: int | None = None
        """None for an etcd that somebody else looks after."""
        self.etcd_members_desired: int | None = None
        self.etcd_database_bytes: int | None = None
        self.snapshots: SnapshotMetrics | None = None
        """None where none are taken."""


class OperatorMetrics:
    """The metrics of one operator; two of these share nothing."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """`clock` tells the time in milliseconds, for ages."""
        self.clock: Final = clock
        self.clusters: dict[tuple[str, str], ClusterMetrics] = {}
        self.is_leader = False
        self.rollouts = 0
        self.drains: Counter[str] = Counter()
        self._reconciles: Counter[tuple[str, str]] = Counter()
        self._reconcile_seconds: dict[str, Histogram] = {}

    def cluster(self, namespace: str, name: str) -> ClusterMetrics:
        """The numbers of a cluster, to be moved; they are new if it is."""
        return self.clusters.setdefault((namespace, name), ClusterMetrics())

    def forget(self, namespace: str, name: str) -> None:
        """A cluster is gone."""
        self.clusters.pop((namespace, name), None)

    def reconciled(self, kind: str, seconds: float, *, succeeded: bool) -> None:
        """A resource has been brought to what is wanted, or could not be."""
        self._reconciles[kind, "success" if succeeded else "error"] += 1
        taken = self._reconcile_seconds.setdefault(kind, Histogram(RECONCILE_SECONDS))
        taken.observe(seconds)

    def reconciles(self) -> Series:
        return list(self._reconciles.items())

    def reconcile_seconds(self) -> Series:
        return [((kind,), taken) for kind, taken in self._reconcile_seconds.items()]

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format: what `/metrics` answers."""
        return "".join(
            render(each.name, each.type, each.meaning, each.labels, each.read(self))
            for each in OPERATOR_METRICS
        ).encode()


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
        "1 at the one operator that acts, 0 at those that stand by.",
        lambda metrics: [((), int(metrics.is_leader))],
    ),
    Metric(
        "kafscale_operator_reconcile_total",
        "counter",
        ("kind", "result"),
        "How often resources were brought to what is wanted; `result` is `success` or `error`.",
        OperatorMetrics.reconciles,
    ),
    Metric(
        "kafscale_operator_reconcile_duration_seconds",
        "histogram",
        ("kind",),
        "How long that took.",
        OperatorMetrics.reconcile_seconds,
    ),
    Metric(
        "kafscale_operator_clusters",
        "gauge",
        (),
        "Clusters that this operator looks after.",
        lambda metrics: [((), len(metrics.clusters))],
    ),
    _cluster(
        "kafscale_operator_brokers_ready",
        "Brokers of a cluster that serve.",
        lambda cluster: cluster.brokers_ready,
    ),
    _cluster(
        "kafscale_operator_brokers_wanted",
        "Brokers that a cluster should have; 0 while it sleeps.",
        lambda cluster: cluster.brokers_desired,
    ),
    _cluster("kafscale_operator_topics", "Topics of a cluster.", lambda cluster: cluster.topics),
    Metric(
        "kafscale_operator_rollouts_total",
        "counter",
        (),
        "Brokers that were restarted to be brought up to date, one after the other.",
        lambda metrics: [((), metrics.rollouts)],
    ),
    Metric(
        "kafscale_operator_drains_total",
        "counter",
        ("result",),
        "Brokers that were asked to hand over what they own, by how that ended.",
        lambda metrics: [((result,), count) for result, count in metrics.drains.items()],
    ),
    _cluster(
        "kafscale_operator_etcd_members_ready",
        "Members of the managed etcd that answer and know a leader.",
        lambda cluster: cluster.etcd_members_ready,
    ),
    _cluster(
        "kafscale_operator_etcd_members_wanted",
        "Members that the managed etcd should have.",
        lambda cluster: cluster.etcd_members_desired,
    ),
    _cluster(
        "kafscale_operator_etcd_database_bytes",
        "The size of the largest database among the members of the managed etcd.",
        lambda cluster: cluster.etcd_database_bytes,
    ),
    Metric(
        "kafscale_operator_etcd_snapshot_age_seconds",
        "gauge",
        ("namespace", "cluster"),
        "How old the newest snapshot of etcd is.",
        _ages,
    ),
    _snapshot(
        "last_success_timestamp_seconds",
        "When the newest snapshot of etcd was taken, in seconds since 1970.",
        lambda snapshots: _seconds(snapshots.newest_at_ms),
    ),
    _snapshot(
        "size_bytes",
        "The size of the newest snapshot of etcd.",
        lambda snapshots: None if snapshots.newest_at_ms is None else snapshots.size_bytes,
    ),
    _snapshot(
        "success",
        "1 if a snapshot was taken when the last one was due, 0 if that failed.",
        lambda snapshots: _flag(snapshots.succeeded),
    ),
    _snapshot(
        "access",
        "1 if the bucket of the snapshots could be written, read and deleted from, else 0.",
        lambda snapshots: _flag(snapshots.is_accessible),
    ),
    _snapshot(
        "failures_total",
        "Attempts to take a snapshot, or to look after those there are, that failed.",
        lambda snapshots: snapshots.failures,
        "counter",
    ),
    _snapshot(
        "duration_seconds",
        "How long the newest snapshot took to be taken and stored.",
        lambda snapshots: snapshots.duration_seconds,
    ),
)
