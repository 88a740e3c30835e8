"""The configuration of brokers: broker.yaml in a ConfigMap, and the environment.

Invariants: `spec.config.settings` overrides the other fields. Secrets, and settings that differ per
broker, are in the environment. Variables override broker.yaml, so those that repeat a setting take
its value from there, and the two never disagree. The loader that brokers start with checks the file
before any pod is created.
"""

import hashlib
from typing import Any, Final

import yaml

from kafscale.net.address import ANY_ADDRESS
from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import config_check, listeners
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.pods import POD_NAME, ZONE, field, pod_name
from kafscale.operator.manifests.settings_tree import Tree, merge, value_at
from kafscale.operator.spec.cluster import Cluster

FILE: Final = "broker.yaml"
DIRECTORY: Final = "/etc/kafscale"
ETCD_TLS_DIRECTORY: Final = f"{DIRECTORY}/etcd-tls"
CONTROL_TLS_DIRECTORY: Final = f"{DIRECTORY}/control-tls"
LISTENER_TLS_DIRECTORY: Final = f"{DIRECTORY}/listener-tls"
DEFAULT_STORAGE_CLASS: Final = "STANDARD"
GRACE_SECONDS_KEPT: Final = 10
"""The part of a pod's grace period after the drain, for pending responses and uploads."""

_REPEATED: Final = {
    "KAFSCALE_S3_BUCKET": "s3.bucket",
    "KAFSCALE_S3_REGION": "s3.region",
    "KAFSCALE_ETCD_ENDPOINTS": "etcd.endpoints",
    "KAFSCALE_SEGMENT_BYTES": "storage.segmentBytes",
    "KAFSCALE_FLUSH_INTERVAL_MS": "storage.flushIntervalMs",
    "KAFSCALE_CACHE_SIZE": "cache.segmentCacheSize",
}


def config_map(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> Manifest:
    """The ConfigMap of the brokers."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(cluster, names.broker_config(cluster), names.BROKER_APP),
        "data": {FILE: _to_yaml(settings(cluster, platform, etcd))},
    }


def checksum(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> str:
    """Changes whenever broker.yaml does."""
    return hashlib.sha256(_to_yaml(settings(cluster, platform, etcd)).encode()).hexdigest()


def problems(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> list[str]:
    """Why brokers would not start or serve with these settings; empty if they would."""
    first = f"{names.broker(cluster)}-0"
    advertised = listeners.advertised_listeners(cluster, platform)
    tree = settings(cluster, platform, etcd)
    if advertised:
        for_first_broker = [entry.replace(POD_NAME, first) for entry in advertised]
        tree = merge(tree, {"broker": {"advertisedListeners": for_first_broker}})
    return config_check.problems(cluster, FILE, _to_yaml(tree))


def settings(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> Tree:
    """The settings of all brokers, as a tree."""
    desired = cluster.spec.config
    tree: Tree = {
        "broker": {
            "drainTimeoutSec": _drain_seconds(cluster),
            # The operator and the console are on other machines; they have certificates.
            "controlHost": ANY_ADDRESS,
        },
        "control": {
            "tls": _tls(CONTROL_TLS_DIRECTORY),
            "allowedSubjects": names.control_subjects(cluster.namespace, cluster.name, platform),
            "operatorAddress": platform.control_address,
        },
        # Of commands in the pod.
        "client": {"controlTls": _tls(CONTROL_TLS_DIRECTORY)},
        "s3": _s3(cluster),
        "etcd": _etcd(etcd),
        "storage": {
            "segmentBytes": desired.segment_bytes,
            "flushIntervalMs": desired.flush_interval_ms,
        },
        "cache": {"segmentCacheSize": desired.cache_size},
    }
    if cluster.spec.tls.enabled:
        tree = merge(tree, _listener_tls())
    tree = merge(tree, desired.settings)
    if isinstance(tree["broker"], dict):
        # They differ per broker, and are in its environment.
        tree["broker"].pop("advertisedListeners", None)
    return tree


def _to_yaml(tree: Tree) -> str:
    """Settings as YAML, sorted, because Kubernetes does not keep the order of keys."""
    text: str = yaml.safe_dump(tree, sort_keys=True)
    return text


def _drain_seconds(cluster: Cluster) -> int:
    grace = cluster.spec.brokers.termination_grace_period_seconds
    return grace - min(GRACE_SECONDS_KEPT, grace // 2)


def _s3(cluster: Cluster) -> Tree:
    s3 = cluster.spec.s3
    is_default_class = s3.storage_class == DEFAULT_STORAGE_CLASS
    optional = {
        "endpoint": s3.endpoint,
        "kmsKeyArn": s3.kms_key_arn,
        "roleArn": s3.role_arn,
        "storageClass": "" if is_default_class else s3.storage_class,
    }
    return {
        "bucket": s3.bucket,
        "region": s3.region,
        "pathStyle": s3.uses_path_style,
        "namespace": cluster.object_namespace,
        "credentialSource": s3.credential_source,
        # The operator does both, once for all brokers and with its own permissions.
        "createBucket": False,
        "manageLifecycle": False,
        **{key: value for key, value in optional.items() if value},
    }


def _etcd(etcd: EtcdAccess) -> Tree:
    tls = _tls(ETCD_TLS_DIRECTORY) if etcd.tls_secret else {"enabled": etcd.uses_tls}
    return {"endpoints": list(etcd.endpoints), "tls": tls}


def _listener_tls() -> Tree:
    """TLS for Kafka clients, and for commands in the pod."""
    files = _tls(LISTENER_TLS_DIRECTORY)
    return {
        "broker": {"securityProtocol": "SSL"},
        "tls": {key: files[key] for key in ("certFile", "keyFile")},
        "client": {"securityProtocol": "SSL", "tls": {"caFile": files["caFile"]}},
    }


def _tls(directory: str) -> Tree:
    """Mutual TLS with the Secret that is mounted at a directory."""
    return {
        "enabled": True,
        "caFile": f"{directory}/ca.crt",
        "certFile": f"{directory}/tls.crt",
        "keyFile": f"{directory}/tls.key",
    }


def env_variables(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> list[dict[str, Any]]:
    """The `env` of the container; POD_NAME comes first, because others refer to it."""
    advertised = {
        "KAFSCALE_BROKER_ADVERTISED_HOST": listeners.advertised_host(cluster, platform),
        "KAFSCALE_BROKER_ADVERTISED_LISTENERS": ",".join(
            listeners.advertised_listeners(cluster, platform)
        ),
    }
    tree = settings(cluster, platform, etcd)
    repeated = {name: value_at(tree, path) for name, path in _REPEATED.items()}
    return [
        pod_name(),
        # Pods carry the zone of their node since Kubernetes 1.35. Before that the label is missing
        # and the rack is empty, as without this variable.
        field("KAFSCALE_BROKER_RACK", f"metadata.labels['{ZONE}']"),
        *({"name": name, "value": value} for name, value in advertised.items() if value),
        *({"name": name, "value": _env_text(value)} for name, value in repeated.items() if value),
    ]


def env_secrets(cluster: Cluster, etcd: EtcdAccess) -> list[str]:
    """The Secrets in the environment; a broker sees their changes only after a restart."""
    s3 = cluster.spec.s3
    keys = s3.secret if s3.credential_source == "env" else ""
    desired = [keys, etcd.credentials_secret, *cluster.spec.brokers.env_secrets]
    return list(dict.fromkeys(name for name in desired if name))


def env_sources(cluster: Cluster, etcd: EtcdAccess) -> list[dict[str, Any]]:
    """The `envFrom` of the container."""
    return [{"secretRef": {"name": name}} for name in env_secrets(cluster, etcd)]


def _env_text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
