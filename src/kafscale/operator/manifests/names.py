"""Names, labels and owner references of a cluster's objects."""

from typing import Any, Final

import msgspec

from kafscale.config.sections.operator import Operator
from kafscale.operator.kube.api import CLUSTERS
from kafscale.operator.spec.cluster import Cluster

KAFKA_PORT: Final = 9092
METRICS_PORT: Final = 9093
CONTROL_PORT: Final = 9095
ETCD_CLIENT_PORT: Final = 2379
ETCD_PEER_PORT: Final = 2380

BROKER_APP: Final = "kafscale-broker"
OPERATOR_APP: Final = "kafscale-operator"
ETCD_APP: Final = "kafscale-etcd"
MANAGED_BY: Final = OPERATOR_APP

SECRETS_CHECKSUM: Final = "kafscale.io/secrets-checksum"
"""The pod annotation that changes with the Secrets that a pod was started with."""
CONFIG_CHECKSUM: Final = "kafscale.io/config-checksum"


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's settings that apply to every cluster."""

    broker_image: str = Operator.broker_image
    operator_image: str = Operator.operator_image
    etcd_image: str = Operator.etcd_image
    image_pull_secrets: tuple[str, ...] = Operator.image_pull_secrets
    namespace: str = Operator.namespace
    """The operator's own namespace."""
    control_address: str = Operator.control_address
    """The address of the operator's control plane, as host:port; empty if there is none."""
    cluster_domain: str = Operator.cluster_domain


def image_pull_secrets(platform: Platform) -> dict[str, Any]:
    """The `imagePullSecrets` of a pod, if any."""
    references = [{"name": name} for name in platform.image_pull_secrets]
    return {"imagePullSecrets": references} if references else {}


class EtcdAccess(msgspec.Struct, frozen=True, kw_only=True):
    """How the brokers of a cluster connect to their etcd."""

    endpoints: tuple[str, ...]
    """As `host:port`, or `https://host:port` with TLS."""
    tls_secret: str = ""
    """A Secret with ca.crt, tls.crt and tls.key; empty without a client certificate."""
    credentials_secret: str = ""
    is_managed: bool = False

    @property
    def uses_tls(self) -> bool:
        """Whether the connection uses TLS, with or without a client certificate."""
        has_https_endpoint = any(endpoint.startswith("https://") for endpoint in self.endpoints)
        return has_https_endpoint or bool(self.tls_secret)


def broker(cluster: Cluster) -> str:
    """The StatefulSet of the brokers, the prefix of its pods, and the Service for clients."""
    return f"{cluster.name}-broker"


def broker_headless(cluster: Cluster) -> str:
    """The headless Service of the brokers."""
    return _broker_headless(cluster.name)


def _broker_headless(cluster_name: str) -> str:
    return f"{cluster_name}-broker-headless"


def broker_account(cluster: Cluster) -> str:
    """The ServiceAccount of the brokers."""
    return f"{cluster.name}-broker"


def broker_config(cluster: Cluster) -> str:
    """The ConfigMap with broker.yaml."""
    return f"{cluster.name}-broker-config"


def control_tls(cluster: Cluster) -> str:
    """The Secret with the certificate of the brokers' control planes."""
    return f"{cluster.name}-control-tls"


def control_client_tls(cluster: Cluster) -> str:
    """The Secret with the certificate of clients of the control planes."""
    return f"{cluster.name}-control-client-tls"


def listener_tls(cluster: Cluster) -> str:
    """The Secret with the certificate of the brokers' listeners."""
    return f"{cluster.name}-listener-tls"


def listener_ca(cluster: Cluster) -> str:
    """The Secret of its CA, and the ConfigMap with the CA's certificate for clients."""
    return f"{cluster.name}-listener-ca"


def control_address(namespace: str, cluster_name: str, broker_id: int, platform: Platform) -> str:
    """The control plane of a broker, by the name of its pod; the broker id is its ordinal."""
    pod, headless = f"{cluster_name}-broker-{broker_id}", _broker_headless(cluster_name)
    return f"{pod_host(pod, headless, namespace, platform.cluster_domain)}:{CONTROL_PORT}"


def control_identities(namespace: str, cluster_name: str, platform: Platform) -> tuple[str, str]:
    """The names that only certificates of one cluster have: of its brokers, and of its clients."""
    service = f"{_broker_headless(cluster_name)}.{namespace}.svc.{platform.cluster_domain}"
    return service, f"control-client.{service}"


def control_subjects(namespace: str, cluster_name: str, platform: Platform) -> list[str]:
    """The names in certificates of those who may use the control plane of a cluster."""
    return [OPERATOR_APP, *control_identities(namespace, cluster_name, platform)]


def etcd(cluster: Cluster) -> str:
    """The StatefulSet of the managed etcd, and its client Service."""
    return f"{cluster.name}-etcd"


def etcd_headless(cluster: Cluster) -> str:
    """The headless Service of the managed etcd."""
    return f"{cluster.name}-etcd-headless"


def etcd_client_tls(cluster: Cluster) -> str:
    """The Secret with the client certificate of the managed etcd."""
    return f"{cluster.name}-etcd-client-tls"


def etcd_server_tls(cluster: Cluster) -> str:
    """The Secret with the certificate of the managed etcd's members."""
    return f"{cluster.name}-etcd-server-tls"


def etcd_ca(cluster: Cluster) -> str:
    """The Secret of the CA of both; it is in no pod."""
    return f"{cluster.name}-etcd-ca"


def pod_host(pod: str, headless: str, namespace: str, domain: str) -> str:
    """The host name of a pod of a StatefulSet."""
    return f"{pod}.{headless}.{namespace}.svc.{domain}"


def etcd_host(cluster: Cluster, platform: Platform, pod: str) -> str:
    """The host name of a pod of the managed etcd."""
    return pod_host(pod, etcd_headless(cluster), cluster.namespace, platform.cluster_domain)


def labels(cluster: Cluster, app: str) -> dict[str, str]:
    """The selector labels of a component of a cluster; they never change."""
    return {"app": app, "cluster": cluster.name}


def metadata(cluster: Cluster, name: str, app: str, **more: Any) -> dict[str, Any]:
    """The metadata of an object that is deleted with its cluster."""
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
