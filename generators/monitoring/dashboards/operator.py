"""The operator dashboard: reconciliation, and the state of clusters and managed etcd."""

from typing import Final

from generators.monitoring.dashboards.panels import (
    Dashboard,
    Panel,
    PanelType,
    Query,
    Row,
    Threshold,
    Unit,
    Variable,
    label_values,
    thresholds,
    time_series,
)
from generators.monitoring.promql import (
    histogram_quantile,
    increase,
    matches,
    max_by,
    min_by,
    rate,
    selector,
    sum_by,
)

_CLUSTER_LABELS: Final = ("namespace", "cluster")
_CLUSTER_LEGEND: Final = "{{namespace}}/{{cluster}}"

_NAMESPACE: Final = Variable(
    name="namespace",
    label="Namespace",
    values=label_values("kafscale_operator_brokers_ready", "namespace"),
    is_multi=True,
)


def _cluster_metric(name: str) -> str:
    return selector(f"kafscale_operator_{name}", matches("namespace", "$namespace"))


def _max_query(name: str) -> Query:
    return Query(max_by(_cluster_metric(name), *_CLUSTER_LABELS), _CLUSTER_LEGEND)


_OPERATOR: Final = Row(
    "Operator",
    (
        Panel(
            title="Leaders",
            description="Operators that hold the Lease; others are on standby.",
            type=PanelType.STAT,
            base_colour="red",
            thresholds=(Threshold(1, "green"), Threshold(2, "red")),
            queries=(Query(sum_by("kafscale_operator_leader")),),
            width=4,
        ),
        Panel(
            title="Clusters",
            description="Clusters that the operator manages.",
            type=PanelType.STAT,
            queries=(Query(max_by("kafscale_operator_clusters")),),
            width=4,
        ),
        time_series(
            "Reconciliations",
            "Reconciliations by kind and result.",
            Unit.PER_SECOND,
            Query(
                sum_by(rate("kafscale_operator_reconcile_total"), "kind", "result"),
                "{{kind}}: {{result}}",
            ),
        ),
        time_series(
            "Reconciliation time (p99)",
            "99th percentile of the duration of a reconciliation by kind.",
            Unit.SECONDS,
            Query(
                histogram_quantile(
                    0.99, "kafscale_operator_reconcile_duration_seconds_bucket", "kind"
                ),
                "{{kind}}",
            ),
        ),
        time_series(
            "Drains",
            "Drains of brokers by result.",
            Unit.COUNT,
            Query(
                sum_by(increase("kafscale_operator_drains_total", "5m"), "result"),
                "{{result}}",
                may_be_empty=True,
            ),
        ),
        time_series(
            "Rollout restarts",
            "Broker restarts of rollouts.",
            Unit.COUNT,
            Query(sum_by(increase("kafscale_operator_rollouts_total", "5m")), "restarts"),
        ),
    ),
)

_CLUSTERS: Final = Row(
    "Clusters",
    (
        time_series(
            "Ready brokers", "Brokers that are ready.", Unit.COUNT, _max_query("brokers_ready")
        ),
        time_series(
            "Missing brokers",
            "Desired brokers that are not ready; 0 while a cluster is scaled to zero.",
            Unit.COUNT,
            Query(
                f"{max_by(_cluster_metric('brokers_desired'), *_CLUSTER_LABELS)}"
                f" - {max_by(_cluster_metric('brokers_ready'), *_CLUSTER_LABELS)}",
                _CLUSTER_LEGEND,
            ),
        ),
        time_series("Topics", "Topics by cluster.", Unit.COUNT, _max_query("topics")),
    ),
)

_ETCDS: Final = Row(
    "Managed etcd",
    (
        time_series(
            "Ready members",
            "Members that respond and have a leader.",
            Unit.COUNT,
            _max_query("etcd_members_ready"),
        ),
        Panel(
            title="Database size",
            description="At etcd.managed.quota, by default 4 GiB, etcd rejects writes.",
            unit=Unit.BYTES,
            thresholds=thresholds(2 * 2**30, 0.8 * 4 * 2**30),
            queries=(_max_query("etcd_database_bytes"),),
        ),
        Panel(
            title="Snapshot age",
            description="Age of the newest snapshot: the metadata that losing etcd would lose.",
            unit=Unit.SECONDS,
            thresholds=thresholds(3600, 7200),
            queries=(
                Query(
                    min_by(_cluster_metric("etcd_snapshot_age_seconds"), *_CLUSTER_LABELS),
                    _CLUSTER_LEGEND,
                ),
            ),
        ),
        time_series(
            "Snapshot size",
            "Size of the newest snapshot.",
            Unit.BYTES,
            _max_query("etcd_snapshot_size_bytes"),
        ),
        time_series(
            "Failed snapshots",
            "Failed snapshots within an hour.",
            Unit.COUNT,
            Query(
                sum_by(
                    increase(_cluster_metric("etcd_snapshot_failures_total"), "1h"),
                    *_CLUSTER_LABELS,
                ),
                _CLUSTER_LEGEND,
            ),
        ),
        Panel(
            title="Snapshot bucket access",
            description="1 if the operator can write, read and delete objects in the bucket.",
            minimum=0,
            maximum=1,
            queries=(_max_query("etcd_snapshot_access"),),
        ),
    ),
)

OPERATOR_DASHBOARD: Final = Dashboard(
    name="operator",
    title="Kafscale: operator",
    description="Reconciliation, and the state of all clusters and their managed etcd.",
    variables=(_NAMESPACE,),
    rows=(_OPERATOR, _CLUSTERS, _ETCDS),
)
