"""What people give to Prometheus and Grafana: files that are made from alerts and dashboards."""

from collections.abc import Mapping

from kafscale.monitoring import alerts, dashboards
from kafscale.monitoring.alerts import rendering as rules
from kafscale.monitoring.alerts.rule import RUNBOOK
from kafscale.monitoring.dashboards import rendering as models

CHART = "helm/kafscale/files"
"""Where the chart looks for them, in the directory of what is deployed."""


def dashboard_files() -> Mapping[str, str]:
    """Every dashboard, by the name of its file."""
    return {f"{each.name}.json": models.text(each) for each in dashboards.DASHBOARDS}


def alerts_file(runbook: str = RUNBOOK) -> str:
    """All rules; they lead to a runbook at that address."""
    return rules.text(alerts.GROUPS, runbook)


def deployed_files() -> Mapping[str, str]:
    """What is committed of it, by path in the directory of what is deployed."""
    made = {f"{CHART}/dashboards/{name}": text for name, text in dashboard_files().items()}
    return {f"{CHART}/alerts.yaml": alerts_file(), **made}
