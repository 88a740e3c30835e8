"""The dashboard of consumer groups: how far they are behind, and whether they are at rest."""

from typing import Final

from kafscale.monitoring.dashboards.panels import (
    GROUP,
    OF_A_CLUSTER,
    TOPIC,
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    lines,
    worse_above,
)
from kafscale.monitoring.promql import here, largest, matches, rate, top, total, trend

_GROUP: Final = matches("group", "$group")
_LAG: Final = here("kafscale_consumer_lag", _GROUP, matches("topic", "$topic"))

_BEHIND: Final = Row(
    "How far behind",
    (
        Panel(
            title="Consumer lag",
            about="Records that a group has yet to read, counted from what it has committed.",
            queries=(Query(total(_LAG, "group", "topic"), "{{group}} - {{topic}}"),),
            thresholds=worse_above(10_000, 1_000_000),
            width=12,
            leads_to="topics",
        ),
        lines(
            "Growth of lag",
            "Records a second that a group falls further behind; below zero, it catches up.",
            Unit.COUNT,
            Query(total(trend(_LAG, "10m"), "group", "topic"), "{{group}} - {{topic}}"),
            width=12,
        ),
        lines(
            "Furthest behind",
            "The ten partitions with the largest lag: one alone is a member that is stuck, or a "
            "key that is too common.",
            Unit.COUNT,
            Query(top(10, _LAG), "{{group}} - {{topic}}/{{partition}}"),
            width=12,
        ),
        lines(
            "Worst partition of a group",
            "The largest lag that any partition of a group has.",
            Unit.COUNT,
            Query(largest(_LAG, "group"), "{{group}}"),
            width=12,
        ),
    ),
)

_REST: Final = Row(
    "At rest or not",
    (
        lines(
            "Groups",
            "By the state that they are in.",
            Unit.COUNT,
            Query(total(here("kafscale_consumer_groups"), "state"), "{{state}}"),
        ),
        lines(
            "Rebalances",
            "Generations, or epochs, that groups begin. Many mean members that come and go, or "
            "that take too long between two polls.",
            Unit.PER_SECOND,
            Query(
                total(rate(here("kafscale_consumer_rebalances_total", _GROUP)), "group"),
                "{{group}}",
            ),
        ),
        lines(
            "Commits",
            "Commits of offsets, by group.",
            Unit.PER_SECOND,
            Query(
                total(rate(here("kafscale_consumer_commits_total", _GROUP)), "group"), "{{group}}"
            ),
        ),
        lines(
            "Transactions",
            "What all of it costs the metadata store: commits that come together are one.",
            Unit.PER_SECOND,
            Query(rate(here("kafscale_consumer_transactions_total")), "{{pod}}"),
        ),
        lines(
            "Shards",
            "Shards of groups that each broker answers for.",
            Unit.COUNT,
            Query(here("kafscale_owned_shards"), "{{pod}}"),
        ),
    ),
)

GROUPS_DASHBOARD: Final = Dashboard(
    name="groups",
    title="Kafscale: consumer groups",
    about="How far groups are behind, and whether they are at rest.",
    variables=(*OF_A_CLUSTER, GROUP, TOPIC),
    rows=(_BEHIND, _REST),
)
