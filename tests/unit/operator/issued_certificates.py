"""Certificates of control planes, issued by the operator's own code, as files."""

from pathlib import Path

from kafscale.aio.clock import clock
from kafscale.config.sections.security import ClientTls, PeerTls
from kafscale.operator.certificates import CA_BUNDLE, CERTIFICATE, KEY, entries_of
from kafscale.operator.control_certificates import ControlCertificates
from kafscale.operator.kube.api import SECRETS
from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster, read_cluster
from services.memory_kube import MemoryKube

PLATFORM = Platform(control_address="kafscale-operator.kafscale.svc:9094")


def cluster_of(name: str, namespace: str = "default") -> Cluster:
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "generation": 1}
    return read_cluster(
        {"metadata": metadata, "spec": {"brokers": {}, "s3": {"bucket": "records"}}}
    )


class IssuedCertificates:
    """An issuer, and the certificates that pods mount."""

    def __init__(self, directory: Path) -> None:
        self.kube = MemoryKube()
        self.now_ms = clock()
        self._directory = directory
        self.issuer = self.restarted()

    def restarted(self) -> ControlCertificates:
        """Another operator, which knows what Kubernetes has."""
        return ControlCertificates(
            self.kube, PLATFORM, clock=lambda: self.now_ms, directory=self._directory / "operator"
        )

    async def of_brokers(self, name: str, namespace: str = "default") -> ClientTls:
        cluster = cluster_of(name, namespace)
        await self.issuer.reconcile(cluster)
        tls = (await self.mount(namespace, names.control_tls(cluster))).as_client()
        assert tls is not None
        return tls

    async def mount(self, namespace: str, secret_name: str) -> PeerTls:
        """Write the files of a Secret, as the kubelet does."""
        secret = await self.kube.get(SECRETS, namespace, secret_name)
        assert secret is not None, f"{secret_name} was not written"
        directory = self._directory / namespace / secret_name
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in entries_of(secret).items():
            (directory / name).write_bytes(content)
        return PeerTls(
            enabled=True,
            cert_file=str(directory / CERTIFICATE),
            key_file=str(directory / KEY),
            ca_file=str(directory / CA_BUNDLE),
        )
