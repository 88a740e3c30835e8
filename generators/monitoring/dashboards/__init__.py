"""Grafana dashboards, one module each; `DASHBOARDS` has all of them."""

from generators.monitoring.dashboards.cluster import CLUSTER_DASHBOARD
from generators.monitoring.dashboards.groups import GROUPS_DASHBOARD
from generators.monitoring.dashboards.operator import OPERATOR_DASHBOARD
from generators.monitoring.dashboards.pipeline import PIPELINE_DASHBOARD
from generators.monitoring.dashboards.s3_and_cost import S3_AND_COST_DASHBOARD
from generators.monitoring.dashboards.topics import TOPICS_DASHBOARD

DASHBOARDS = (
    CLUSTER_DASHBOARD,
    TOPICS_DASHBOARD,
    GROUPS_DASHBOARD,
    S3_AND_COST_DASHBOARD,
    PIPELINE_DASHBOARD,
    OPERATOR_DASHBOARD,
)

__all__ = ["DASHBOARDS"]
