"""The managed etcd of a cluster, accessed with its client certificate.

etcd = DeployedEtcd(shop, tmp_path) etcd.lose_data(1) etcd.wait_healthy()
"""

import asyncio
import base64
from pathlib import Path

from kafscale.config.sections.etcd import Etcd, EtcdTls
from kafscale.errors import KafscaleError
from kafscale.metadata.store.etcd.maintenance import EtcdMember, Maintenance, MemberStatus
from kafscale.operator.kube.api import PODS, SECRETS, VOLUME_CLAIMS
from services.kubernetes.deployed import DeployedCluster, is_ready
from services.kubernetes.kube_client import Manifest

SIZE = 3


class DeployedEtcd:
    """A managed etcd of three members."""

    def __init__(self, deployed: DeployedCluster, directory: Path) -> None:
        """`directory` is for certificates."""
        self.deployed = deployed
        self._directory = directory

    def name(self, index: int) -> str:
        """The name of a member and its pod."""
        return f"{self.deployed.name}-etcd-{index}"

    def pods(self) -> list[Manifest]:
        labels = {"app": "kafscale-etcd", "cluster": self.deployed.name}
        return self.deployed.kube.list(PODS, self.deployed.namespace, labels)

    def pod_uids(self) -> dict[str, str]:
        """The uids of pods by name: a recreated pod has another one."""
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods()}

    def ready(self) -> int:
        """The number of members that are ready and not terminating."""
        return sum(map(is_ready, self.pods()))

    def delete(self, index: int) -> None:
        """Delete the pod of a member."""
        self.deployed.kube.delete(PODS, self.deployed.namespace, self.name(index))

    def lose_data(self, index: int) -> None:
        """Delete the volume and the pod of a member."""
        claim = f"data-{self.name(index)}"
        self.deployed.kube.delete(VOLUME_CLAIMS, self.deployed.namespace, claim)
        self.delete(index)

    def wait_healthy(self, *, seconds_max: float = 90) -> None:
        """Return when all members are healthy, and the operator says so."""

        def is_healthy() -> bool:
            condition = self.deployed.condition("EtcdMembersHealthy")
            return condition.get("status") == "True" and self.ready() == len(self.members()) == SIZE

        self.deployed.wait_until(is_healthy, "a healthy etcd", seconds_max=seconds_max)

    def members(self) -> list[EtcdMember]:
        """The voting members, from the first member that responds."""
        for index in range(SIZE):
            try:
                members = asyncio.run(self._members(index))
            except KafscaleError:
                continue
            return [member for member in members if not member.is_learner]
        return []

    def status(self, index: int, *, with_certificate: bool = True) -> MemberStatus:
        """The status of one member; raises if it rejects the connection."""
        settings = self.settings() if with_certificate else self._settings_without_certificate()
        return asyncio.run(self._status(index, settings))

    def settings(self) -> Etcd:
        """Settings with the certificate of brokers."""
        files = self._certificates()
        tls = EtcdTls(
            enabled=True,
            ca_file=files["ca.crt"],
            cert_file=files["tls.crt"],
            key_file=files["tls.key"],
        )
        return Etcd(endpoints=(), tls=tls, request_timeout_ms=4000)

    def _settings_without_certificate(self) -> Etcd:
        tls = EtcdTls(enabled=True, ca_file=self._certificates()["ca.crt"])
        return Etcd(endpoints=(), tls=tls, dial_timeout_ms=1000, request_timeout_ms=2000)

    def _certificates(self) -> dict[str, str]:
        deployed = self.deployed
        members = deployed.kube.get(SECRETS, deployed.namespace, f"{deployed.name}-etcd-client-tls")
        assert members is not None
        for name, content in members["data"].items():
            (self._directory / name).write_bytes(base64.b64decode(content))
        return {name: str(self._directory / name) for name in members["data"]}

    def _url(self, index: int) -> str:
        headless = f"{self.deployed.name}-etcd-headless.{self.deployed.namespace}"
        return f"https://{self.name(index)}.{headless}.svc.cluster.local:2379"

    async def _members(self, index: int) -> list[EtcdMember]:
        async with Maintenance(self._url(index), self.settings()) as member:
            return await member.members()

    async def _status(self, index: int, settings: Etcd) -> MemberStatus:
        async with Maintenance(self._url(index), settings) as member:
            return await member.status()
