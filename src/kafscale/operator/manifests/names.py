"""What the objects of a cluster are called, how they are told apart, and whose they are."""

from typing import Any, Final

import msgspec

from kafscale.config.sections.operator import Operator
from kafscale.operator.kube.kinds import CLUSTERS
from kafscale.operator.spec.cluster import Cluster

KAFKA_PORT: Final = 9092
METRICS_PORT: Final = 9093
ETCD_CLIENT_PORT: Final = 2379
ETCD_PEER_PORT: Final = 2380

BROKER_APP: Final = "kafscale-broker"
ETCD_APP: Final = "kafscale-etcd"
MANAGED_BY: Final = "kafscale-operator"

SECRETS_CHECKSUM: Final = "kafscale.io/secrets-checksum"
"""The annotation of pods that changes when a Secret does that they were started with."""
CONFIG_CHECKSUM: Final = "kafscale.io/config-checksum"
WATCHED: Final = "kafscale.io/watched"
"""The label of Secrets that brokers were started with, so that a change is seen at once."""


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator was set up with, and every cluster gets."""

    broker_image: str = Operator.broker_image
    operator_image: str = Operator.operator_image
    etcd_image: str = Operator.etcd_image
    image_pull_secrets: tuple[str, ...] = Operator.image_pull_secrets
    namespace: str = Operator.namespace
    """Of the operator itself."""
    control_address: str = Operator.control_address
    """Where brokers reach the operator's control plane, as host:port; empty for nowhere."""
    cluster_domain: str = Operator.cluster_domain


def pull_secrets(platform: Platform) -> dict[str, Any]:
    """What a pod is told to pull its images with, if anything."""
    listed = [{"name": name} for name in platform.image_pull_secrets]
    return {"imagePullSecrets": listed} if listed else {}


class EtcdAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How the brokers of a cluster reach their etcd."""

    endpoints: tuple[str, ...]
    """As `host:port`, or `https://host:port` with TLS."""
    tls_secret: str = ""
    """A Secret with ca.crt, tls.crt and tls.key; empty for an etcd without TLS."""
    credentials_secret: str = ""
    is_managed: bool = False

    @property
    def uses_tls(self) -> bool:
        """Whether it is asked over TLS, with a certificate of ours or without."""
        is_said = any(endpoint.startswith("https://") for endpoint in self.endpoints)
        return is_said or bool(self.tls_secret)


def broker(cluster: Cluster) -> str:
    """The StatefulSet of the brokers, its headless Service's name less a suffix, and its pods'."""
    return f"{cluster.name}-broker"


def broker_headless(cluster: Cluster) -> str:
    """The Service that gives each broker a name."""
    return f"{cluster.name}-broker-headless"


def broker_account(cluster: Cluster) -> str:
    """The ServiceAccount of the brokers."""
    return f"{cluster.name}-broker"


def broker_config(cluster: Cluster) -> str:
    """The ConfigMap with broker.yaml."""
    return f"{cluster.name}-broker-config"


def etcd(cluster: Cluster) -> str:
    """The StatefulSet of the managed etcd; its client Service."""
    return f"{cluster.name}-etcd"


def etcd_headless(cluster: Cluster) -> str:
    """The Service that gives each member a name."""
    return f"{cluster.name}-etcd-headless"


def etcd_client_tls(cluster: Cluster) -> str:
    """The Secret that clients of the managed etcd show."""
    return f"{cluster.name}-etcd-client-tls"


def etcd_server_tls(cluster: Cluster) -> str:
    """The Secret that members of the managed etcd show."""
    return f"{cluster.name}-etcd-server-tls"


def etcd_authority(cluster: Cluster) -> str:
    """The Secret of the authority behind both; no pod has it."""
    return f"{cluster.name}-etcd-authority"


def pod_host(pod: str, headless: str, namespace: str, domain: str) -> str:
    """The name by which a pod of a StatefulSet is reached."""
    return f"{pod}.{headless}.{namespace}.svc.{domain}"


def etcd_host(cluster: Cluster, platform: Platform, pod: str) -> str:
    """The name by which a pod of the managed etcd is reached."""
    return pod_host(pod, etcd_headless(cluster), cluster.namespace, platform.cluster_domain)


def labels(cluster: Cluster, app: str) -> dict[str, str]:
    """What tells the pods of a part of a cluster from all others; never changes."""
    return {"app": app, "cluster": cluster.name}


def metadata(cluster: Cluster, name: str, app: str, **more: Any) -> dict[str, Any]:
    """The metadata of an object that goes when its cluster goes."""
    return {
        "name": name,
        "namespace": cluster.namespace,
        "labels": {
            **labels(cluster, app),
            "app.kubernetes.io/name": app,
            "app.kubernetes.io/instance": cluster.name,
            "app.kubernetes.io/part-of": "kafscale",
            "app.kubernetes.io/managed-by": MANAGED_BY,
        },
        "ownerReferences": [
            {
                "apiVersion": CLUSTERS.api_version,
                "kind": CLUSTERS.kind,
                "name": cluster.name,
                "uid": cluster.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        **more,
    }
