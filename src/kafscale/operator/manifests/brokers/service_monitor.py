"""The ServiceMonitor of the brokers, for the Prometheus operator.

Invariants: each broker is scraped once, even if it is not ready, through the headless Service. The
caller checks whether Kubernetes has the kind ServiceMonitor.
"""

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import services
from kafscale.operator.manifests.brokers.listeners import METRICS
from kafscale.operator.spec.cluster import Cluster


def service_monitor(cluster: Cluster) -> Manifest | None:
    """The ServiceMonitor, if enabled."""
    desired = cluster.spec.monitoring
    if not desired.service_monitor:
        return None
    metadata = names.metadata(cluster, names.broker(cluster), names.BROKER_APP)
    # The operator's own labels win: it selects its objects by them.
    metadata["labels"] = {**desired.labels, **metadata["labels"]}
    selected = {**names.labels(cluster, names.BROKER_APP), services.ROLE: services.HEADLESS}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": selected},
            "namespaceSelector": {"matchNames": [cluster.namespace]},
            # Every series gets a label with the cluster's name.
            "targetLabels": ["cluster"],
            "endpoints": [
                {"port": METRICS, "path": "/metrics", "interval": f"{desired.interval_seconds}s"}
            ],
        },
    }
