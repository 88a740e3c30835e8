"""The certificates of the brokers' listeners for Kafka clients, if `spec.tls` asks for them.

Each cluster has a CA of its own, whose key is in no pod; clients trust the ConfigMap with its
certificate. Invariant: brokers read their certificate again when it changes, so that a renewal
interrupts no client.
"""

from collections.abc import Callable

from kafscale.operator.certificates import CA_BUNDLE, LOCAL_HOSTS, Holder
from kafscale.operator.issued_secrets import IssuedSecrets
from kafscale.operator.kube.api import Kube
from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster


class ListenerCertificates:
    """Issues and renews the certificates of clusters."""

    def __init__(self, kube: Kube, platform: Platform, clock: Callable[[], int]) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._platform = platform
        self._secrets = IssuedSecrets(kube, clock)

    async def reconcile(self, cluster: Cluster) -> None:
        """Write what is missing, due or different."""
        if not cluster.spec.tls.enabled:
            return
        own, authority = (
            names.metadata(cluster, name, names.BROKER_APP)
            for name in (names.listener_tls(cluster), names.listener_ca(cluster))
        )
        issued = await self._secrets.read(own)
        name = f"Kafka listeners of {cluster.namespace}/{cluster.name}"
        ca = await self._secrets.authority(authority, name, [issued] if issued else [])
        await self._kube.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": authority,
                "data": {CA_BUNDLE: ca.bundle_pem.decode()},
            }
        )
        await self._secrets.issue(ca, own, Holder("kafscale-broker", self._hosts(cluster)))

    def _hosts(self, cluster: Cluster) -> list[str]:
        space, domain = cluster.namespace, self._platform.cluster_domain
        service, headless = names.broker(cluster), names.broker_headless(cluster)
        return list(
            dict.fromkeys(
                [
                    names.pod_host("*", headless, space, domain),
                    f"{service}.{space}.svc.{domain}",
                    f"{service}.{space}.svc",
                    f"{service}.{space}",
                    service,
                    *cluster.spec.tls.hosts,
                    *LOCAL_HOSTS,
                ]
            )
        )
