"""The consumer groups dashboard: lag, states and rebalances."""

from typing import Final

from generators.monitoring.dashboards.panels import (
    CLUSTER_VARIABLES,
    GROUP,
    TOPIC,
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    thresholds,
    time_series,
)
from generators.monitoring.promql import deriv, in_cluster, matches, max_by, rate, sum_by, topk

_GROUP: Final = matches("group", "$group")
_LAG: Final = in_cluster("kafscale_consumer_lag", _GROUP, matches("topic", "$topic"))

_LAG_ROW: Final = Row(
    "Lag",
    (
        Panel(
            title="Consumer lag",
            description="Records after the committed offsets of a group, by group and topic.",
            queries=(Query(sum_by(_LAG, "group", "topic"), "{{group}} - {{topic}}"),),
            thresholds=thresholds(10_000, 1_000_000),
            width=12,
            linked_dashboard="topics",
        ),
        time_series(
            "Lag growth",
            "Change of the lag in records per second; negative while a group catches up.",
            Unit.COUNT,
            Query(sum_by(deriv(_LAG, "10m"), "group", "topic"), "{{group}} - {{topic}}"),
            width=12,
        ),
        time_series(
            "Partitions with the largest lag",
            "The ten partitions with the largest lag. A single one suggests a stuck member or a "
            "hot key.",
            Unit.COUNT,
            Query(topk(10, _LAG), "{{group}} - {{topic}}/{{partition}}"),
            width=12,
        ),
        time_series(
            "Largest partition lag",
            "The largest lag of a partition by group.",
            Unit.COUNT,
            Query(max_by(_LAG, "group"), "{{group}}"),
            width=12,
        ),
    ),
)

_ACTIVITY_ROW: Final = Row(
    "Activity",
    (
        time_series(
            "Groups",
            "Number of groups by state.",
            Unit.COUNT,
            Query(sum_by(in_cluster("kafscale_consumer_groups"), "state"), "{{state}}"),
        ),
        time_series(
            "Rebalances",
            "New generations or epochs by group. Many rebalances suggest unstable members, or "
            "members that exceed max.poll.interval.ms.",
            Unit.PER_SECOND,
            Query(
                sum_by(rate(in_cluster("kafscale_consumer_rebalances_total", _GROUP)), "group"),
                "{{group}}",
            ),
        ),
        time_series(
            "Commits",
            "Offset commits by group.",
            Unit.PER_SECOND,
            Query(
                sum_by(rate(in_cluster("kafscale_consumer_commits_total", _GROUP)), "group"),
                "{{group}}",
            ),
        ),
        time_series(
            "Transactions",
            "Transactions of the metadata store by broker; concurrent commits share one.",
            Unit.PER_SECOND,
            Query(rate(in_cluster("kafscale_consumer_transactions_total")), "{{pod}}"),
        ),
        time_series(
            "Shards",
            "Group shards by coordinator.",
            Unit.COUNT,
            Query(in_cluster("kafscale_owned_shards"), "{{pod}}"),
        ),
    ),
)

GROUPS_DASHBOARD: Final = Dashboard(
    name="groups",
    title="Kafscale: consumer groups",
    description="Lag, states and rebalances of consumer groups.",
    variables=(*CLUSTER_VARIABLES, GROUP, TOPIC),
    rows=(_LAG_ROW, _ACTIVITY_ROW),
)
