"""The PodDisruptionBudget of the brokers: nodes are emptied one broker at a time."""

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.spec.cluster import Cluster


def budget(cluster: Cluster) -> Manifest:
    """The budget; a broker that is not ready serves nobody, and may always be moved."""
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
