"""The dashboard of the operator: what it does, and how all clusters and their etcds are."""

from typing import Final

from kafscale.monitoring.dashboards.panels import (
    Dashboard,
    Kind,
    Panel,
    Query,
    Row,
    Threshold,
    Unit,
    Variable,
    lines,
    listed,
    worse_above,
)
from kafscale.monitoring.promql import (
    increase,
    largest,
    matches,
    quantile,
    rate,
    series,
    smallest,
    total,
)

_CLUSTER: Final = ("namespace", "cluster")
_NAMED: Final = "{{namespace}}/{{cluster}}"

_NAMESPACE: Final = Variable(
    name="namespace",
    label="Namespace of clusters",
    values=listed("kafscale_operator_brokers_ready", "namespace"),
    several=True,
)


def _about_clusters(name: str) -> str:
    return series(f"kafscale_operator_{name}", matches("namespace", "$namespace"))


def _largest(name: str) -> Query:
    return Query(largest(_about_clusters(name), *_CLUSTER), _NAMED)


_OPERATOR: Final = Row(
    "Operator",
    (
        Panel(
            title="Leaders",
            about="One acts; the others stand by.",
            kind=Kind.NUMBER,
            base_colour="red",
            thresholds=(Threshold(1, "green"), Threshold(2, "red")),
            queries=(Query(total("kafscale_operator_leader")),),
            width=4,
        ),
        Panel(
            title="Clusters",
            about="Clusters that are looked after.",
            kind=Kind.NUMBER,
            queries=(Query(largest("kafscale_operator_clusters")),),
            width=4,
        ),
        lines(
            "Looks at resources",
            "How often resources are brought to what is wanted, by outcome.",
            Unit.PER_SECOND,
            Query(
                total(rate("kafscale_operator_reconcile_total"), "kind", "result"),
                "{{kind}}: {{result}}",
            ),
        ),
        lines(
            "Time of a look (p99)",
            "How long that takes, one time in a hundred.",
            Unit.SECONDS,
            Query(
                quantile(0.99, "kafscale_operator_reconcile_duration_seconds_bucket", "kind"),
                "{{kind}}",
            ),
        ),
        lines(
            "Drains",
            "Brokers that were asked to hand over what they own, by how that ended.",
            Unit.COUNT,
            Query(
                total(increase("kafscale_operator_drains_total", "5m"), "result"),
                "{{result}}",
                may_be_empty=True,
            ),
        ),
        lines(
            "Restarts of brokers",
            "Those that bring them up to date, one after the other.",
            Unit.COUNT,
            Query(total(increase("kafscale_operator_rollouts_total", "5m")), "restarts"),
        ),
    ),
)

_CLUSTERS: Final = Row(
    "Clusters",
    (
        lines(
            "Brokers that serve", "Brokers that are ready.", Unit.COUNT, _largest("brokers_ready")
        ),
        lines(
            "Brokers that are missing",
            "How many fewer are ready than the cluster should have; 0 while it sleeps.",
            Unit.COUNT,
            Query(
                f"{largest(_about_clusters('brokers_wanted'), *_CLUSTER)}"
                f" - {largest(_about_clusters('brokers_ready'), *_CLUSTER)}",
                _NAMED,
            ),
        ),
        lines("Topics", "Topics of each cluster.", Unit.COUNT, _largest("topics")),
    ),
)

_ETCDS: Final = Row(
    "Managed etcds",
    (
        lines(
            "Members that are ready",
            "Members that answer and know a leader.",
            Unit.COUNT,
            _largest("etcd_members_ready"),
        ),
        Panel(
            title="Size of the database",
            about="At etcd.managed.quota, 4 GiB unless set otherwise, etcd takes no writes.",
            unit=Unit.BYTES,
            thresholds=worse_above(2 * 2**30, 0.8 * 4 * 2**30),
            queries=(_largest("etcd_database_bytes"),),
        ),
        Panel(
            title="Age of the newest snapshot",
            about="What a lost etcd would lose.",
            unit=Unit.SECONDS,
            thresholds=worse_above(3600, 7200),
            queries=(
                Query(smallest(_about_clusters("etcd_snapshot_age_seconds"), *_CLUSTER), _NAMED),
            ),
        ),
        lines(
            "Size of the newest snapshot",
            "What a restore has to fetch.",
            Unit.BYTES,
            _largest("etcd_snapshot_size_bytes"),
        ),
        lines(
            "Snapshots that failed",
            "Attempts within an hour that failed.",
            Unit.COUNT,
            Query(
                total(increase(_about_clusters("etcd_snapshot_failures_total"), "1h"), *_CLUSTER),
                _NAMED,
            ),
        ),
        Panel(
            title="Bucket of snapshots",
            about="1 where it could be written, read and deleted from.",
            minimum=0,
            maximum=1,
            queries=(_largest("etcd_snapshot_access"),),
        ),
    ),
)

OPERATOR_DASHBOARD: Final = Dashboard(
    name="operator",
    title="Kafscale: the operator",
    about="What the operator does, and how all clusters and their etcds are.",
    variables=(_NAMESPACE,),
    rows=(_OPERATOR, _CLUSTERS, _ETCDS),
)
