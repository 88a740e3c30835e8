"""The environment of a broker: secrets, what is each broker's own, and fields with variables.

The law: variables win over broker.yaml, so each that repeats a setting is taken from there, and the
two never disagree.
"""

from typing import Any, Final

from kafscale.operator.manifests import placement
from kafscale.operator.manifests.brokers import config_map, listeners
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.pod_spec import field, pod_name
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
    """The `env` of the container; POD_NAME is first, for others are made of it."""
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
        # Pods know their nodes' zones from Kubernetes 1.35 on; before that the label is missing,
        # and the rack empty, which is what a broker knows without this variable.
        field("KAFSCALE_BROKER_RACK", f"metadata.labels['{placement.ZONE}']"),
        *({"name": name, "value": value} for name, value in advertised.items() if value),
        *({"name": name, "value": _text(value)} for name, value in repeated.items() if value),
    ]


def secrets(cluster: Cluster, etcd: EtcdAccess) -> list[str]:
    """The Secrets whose entries are variables: a broker sees a change only when it is restarted."""
    s3 = cluster.spec.s3
    keys = s3.secret if s3.credential_source == "env" else ""
    wanted = [keys, etcd.credentials_secret, *cluster.spec.brokers.env_secrets]
    return list(dict.fromkeys(name for name in wanted if name))


def sources(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    """The `envFrom` of the container."""
    return [{"secretRef": {"name": name}} for name in secrets(cluster, etcd)]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
