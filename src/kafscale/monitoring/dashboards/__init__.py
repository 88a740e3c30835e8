"""Grafana dashboards, one module each; `DASHBOARDS` has all of them."""

from kafscale.monitoring.dashboards.cluster import CLUSTER_DASHBOARD
from kafscale.monitoring.dashboards.groups import GROUPS_DASHBOARD
from kafscale.monitoring.dashboards.operator import OPERATOR_DASHBOARD
from kafscale.monitoring.dashboards.pipeline import PIPELINE_DASHBOARD
from kafscale.monitoring.dashboards.s3_and_cost import S3_AND_COST_DASHBOARD
from kafscale.monitoring.dashboards.topics import TOPICS_DASHBOARD

DASHBOARDS = (
    CLUSTER_DASHBOARD,
    TOPICS_DASHBOARD,
    GROUPS_DASHBOARD,
    S3_AND_COST_DASHBOARD,
    PIPELINE_DASHBOARD,
    OPERATOR_DASHBOARD,
)

__all__ = ["DASHBOARDS"]
