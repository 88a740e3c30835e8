"""broker.yaml: the settings that all brokers of a cluster share, in a ConfigMap.

Invariants: `spec.config.settings` overrides the other fields. Secrets, and settings that differ per
broker, are in the environment (`env`) instead. The loader that brokers start with checks the file
before any pod is created.
"""

import hashlib
from typing import Any, Final

import yaml

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import config_check, listeners
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.pod_spec import POD_NAME
from kafscale.operator.manifests.settings_tree import Tree, merge
from kafscale.operator.spec.cluster import Cluster

FILE: Final = "broker.yaml"
DIRECTORY: Final = "/etc/kafscale"
ETCD_TLS_DIRECTORY: Final = f"{DIRECTORY}/etcd-tls"
GRACE_SECONDS_KEPT: Final = 10
"""The part of a pod's grace period after the drain, for pending responses and uploads."""


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
        "broker": {"drainTimeoutSec": _drain_seconds(cluster)},
        "s3": _s3(cluster),
        "etcd": _etcd(etcd),
        "storage": {
            "segmentBytes": desired.segment_bytes,
            "flushIntervalMs": desired.flush_interval_ms,
        },
        "cache": {"segmentCacheSize": desired.cache_size},
    }
    if platform.control_address:
        tree["control"] = {"operatorAddress": platform.control_address}
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
    optional = {"endpoint": s3.endpoint, "kmsKeyArn": s3.kms_key_arn, "roleArn": s3.role_arn}
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
    tls: dict[str, Any] = {"enabled": etcd.uses_tls}
    if etcd.tls_secret:
        tls["caFile"] = f"{ETCD_TLS_DIRECTORY}/ca.crt"
        tls["certFile"] = f"{ETCD_TLS_DIRECTORY}/tls.crt"
        tls["keyFile"] = f"{ETCD_TLS_DIRECTORY}/tls.key"
    return {"endpoints": list(etcd.endpoints), "tls": tls}
