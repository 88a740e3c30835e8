"""Dashboards for Grafana, written in code: one module each, all of them in `DASHBOARDS`."""

from kafscale.observability.dashboards.cluster import CLUSTER_DASHBOARD
from kafscale.observability.dashboards.groups import GROUPS_DASHBOARD
from kafscale.observability.dashboards.operator import OPERATOR_DASHBOARD
from kafscale.observability.dashboards.pipeline import PIPELINE_DASHBOARD
from kafscale.observability.dashboards.s3_and_cost import S3_AND_COST_DASHBOARD
from kafscale.observability.dashboards.topics import TOPICS_DASHBOARD

DASHBOARDS = (
    CLUSTER_DASHBOARD,
    TOPICS_DASHBOARD,
    GROUPS_DASHBOARD,
    S3_AND_COST_DASHBOARD,
    PIPELINE_DASHBOARD,
    OPERATOR_DASHBOARD,
)

__all__ = ["DASHBOARDS"]
