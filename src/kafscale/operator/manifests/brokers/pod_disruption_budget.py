"""The PodDisruptionBudget of the brokers: nodes are drained one broker at a time."""

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.spec.cluster import Cluster


def pod_disruption_budget(cluster: Cluster) -> Manifest:
    """The budget; a broker that is not ready serves no clients and may always be evicted."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": names.metadata(cluster, names.broker(cluster), names.BROKER_APP),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": names.labels(cluster, names.BROKER_APP)},
        },
    }
