"""The environment of a broker: secrets, settings of one broker, and fields with variables.

Invariant: variables override broker.yaml, so those that repeat a setting take its value from there,
and the two never disagree.
"""

from typing import Any, Final

from kafscale.operator.manifests.brokers import config_map, listeners
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.pod_spec import ZONE, field, pod_name
from kafscale.operator.manifests.settings_tree import value_at
from kafscale.operator.spec.cluster import Cluster

_REPEATED: Final = {
    "KAFSCALE_S3_BUCKET": "s3.bucket",
    "KAFSCALE_S3_REGION": "s3.region",
    "KAFSCALE_ETCD_ENDPOINTS": "etcd.endpoints",
    "KAFSCALE_SEGMENT_BYTES": "storage.segmentBytes",
    "KAFSCALE_FLUSH_INTERVAL_MS": "storage.flushIntervalMs",
    "KAFSCALE_CACHE_SIZE": "cache.segmentCacheSize",
}


def variables(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> list[dict[str, Any]]:
    """The `env` of the container; POD_NAME comes first, because others refer to it."""
    advertised = {
        "KAFSCALE_BROKER_ADVERTISED_HOST": listeners.advertised_host(cluster, platform),
        "KAFSCALE_BROKER_ADVERTISED_LISTENERS": ",".join(
            listeners.advertised_listeners(cluster, platform)
        ),
    }
    tree = config_map.settings(cluster, platform, etcd)
    repeated = {name: value_at(tree, path) for name, path in _REPEATED.items()}
    return [
        pod_name(),
        # Pods carry the zone of their node since Kubernetes 1.35. Before that the label is missing
        # and the rack is empty, as without this variable.
        field("KAFSCALE_BROKER_RACK", f"metadata.labels['{ZONE}']"),
        *({"name": name, "value": value} for name, value in advertised.items() if value),
        *({"name": name, "value": _text(value)} for name, value in repeated.items() if value),
    ]


def secrets(cluster: Cluster, etcd: EtcdAccess) -> list[str]:
    """The Secrets in the environment; a broker sees their changes only after a restart."""
    s3 = cluster.spec.s3
    keys = s3.secret if s3.credential_source == "env" else ""
    desired = [keys, etcd.credentials_secret, *cluster.spec.brokers.env_secrets]
    return list(dict.fromkeys(name for name in desired if name))


def sources(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    """The `envFrom` of the container."""
    return [{"secretRef": {"name": name}} for name in secrets(cluster, etcd)]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
