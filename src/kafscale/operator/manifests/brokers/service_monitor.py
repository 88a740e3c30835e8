"""The ServiceMonitor of the brokers, by which the operator of Prometheus finds them.

The law: each broker is asked once, and also while it is not ready: it is the headless Service that
is looked at. Whether Kubernetes knows ServiceMonitors at all is for the caller to ask.
"""

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import services
from kafscale.operator.manifests.brokers.listeners import METRICS
from kafscale.operator.spec.cluster import Cluster


def service_monitor(cluster: Cluster) -> Manifest | None:
    """The ServiceMonitor, if one is wanted."""
    wanted = cluster.spec.monitoring
    if not wanted.service_monitor:
        return None
    metadata = names.metadata(cluster, names.broker(cluster), names.BROKER_APP)
    # Ours win: by them the operator finds what is its own.
    metadata["labels"] = {**wanted.labels, **metadata["labels"]}
    selected = {**names.labels(cluster, names.BROKER_APP), services.ROLE: services.HEADLESS}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": selected},
            "namespaceSelector": {"matchNames": [cluster.namespace]},
            # The cluster is told by a label of its own in every series.
            "targetLabels": ["cluster"],
            "endpoints": [
                {"port": METRICS, "path": "/metrics", "interval": f"{wanted.interval_seconds}s"}
            ],
        },
    }
