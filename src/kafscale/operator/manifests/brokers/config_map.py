"""broker.yaml: the settings that all brokers of a cluster share, in a ConfigMap.

The laws: `spec.config.settings` wins over the other fields. What is a secret, or differs from
broker to broker, is not in here but in the environment (`broker_environment`). The loader that
brokers start with is the judge: what it would refuse is known before there is a pod.
"""

import hashlib
from typing import Any, Final

import yaml

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.manifests.brokers import config_check, listeners
from kafscale.operator.manifests.names import EtcdAccess, Platform
from kafscale.operator.manifests.pod_spec import POD_NAME
from kafscale.operator.manifests.settings_tree import Tree, merged
from kafscale.operator.spec.cluster import Cluster

FILE: Final = "broker.yaml"
DIRECTORY: Final = "/etc/kafscale"
ETCD_TLS_DIRECTORY: Final = f"{DIRECTORY}/etcd-tls"
GRACE_SECONDS_KEPT: Final = 10
"""What is left of a pod's grace after the drain, to answer clients and to make records durable."""


def config_map(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> Manifest:
    """The ConfigMap that brokers are started with."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(cluster, names.broker_config(cluster), names.BROKER_APP),
        "data": {FILE: _written(settings(cluster, platform, etcd))},
    }


def checksum(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> str:
    """Changes whenever broker.yaml does."""
    return hashlib.sha256(_written(settings(cluster, platform, etcd)).encode()).hexdigest()


def problems(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> list[str]:
    """Why brokers would not start with these settings, or not serve; best nothing."""
    first = f"{names.broker(cluster)}-0"
    advertised = listeners.advertised_listeners(cluster, platform)
    tree = settings(cluster, platform, etcd)
    if advertised:
        of_first = [entry.replace(POD_NAME, first) for entry in advertised]
        tree = merged(tree, {"broker": {"advertisedListeners": of_first}})
    return config_check.problems(cluster, FILE, _written(tree))


def settings(cluster: Cluster, platform: Platform, etcd: EtcdAccess) -> Tree:
    """The settings of all brokers, as a tree."""
    wanted = cluster.spec.config
    tree: Tree = {
        "broker": {"drainTimeoutSec": _drain_seconds(cluster)},
        "s3": _s3(cluster),
        "etcd": _etcd(etcd),
        "storage": {
            "segmentBytes": wanted.segment_bytes,
            "flushIntervalMs": wanted.flush_interval_ms,
        },
        "cache": {"segmentCacheSize": wanted.cache_size},
    }
    if platform.control_address:
        tree["control"] = {"operatorAddress": platform.control_address}
    tree = merged(tree, wanted.settings)
    if isinstance(tree["broker"], dict):
        # Each broker has its own, in its environment.
        tree["broker"].pop("advertisedListeners", None)
    return tree


def _written(tree: Tree) -> str:
    """Settings as YAML, in an order of their own, because Kubernetes keeps nobody's."""
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
        # The operator sees to both, once for all brokers and with rights of its own.
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
