"""The certificates of the control planes: of the operator, and of the brokers of every cluster.

One CA issues them. Its Secret is in the operator's namespace, and the operator's own certificate in
files of this process. A cluster has two Secrets: one is mounted by its brokers; the other is for
the console, commands and Spark jobs.

Invariants: a certificate of one cluster is of no use for another one, because brokers and the
operator compare the names in it (`names.control_subjects`). Nothing that a Secret of a cluster
contains is trusted. Brokers and the operator read their files again for new connections, so a
renewal interrupts nothing.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kafscale.config.sections.security import PeerTls
from kafscale.net import address
from kafscale.operator.certificates import (
    CA_BUNDLE,
    CERTIFICATE,
    KEY,
    LOCAL_HOSTS,
    CertificateAuthority,
    Entries,
    Holder,
)
from kafscale.operator.issued_secrets import IssuedSecrets
from kafscale.operator.kube.api import Kube
from kafscale.operator.manifests import names
from kafscale.operator.manifests.names import Platform
from kafscale.operator.spec.cluster import Cluster

CA_SECRET: Final = "kafscale-control-ca"  # noqa: S105 - a name.


class ControlCertificates:
    """Issues and renews certificates."""

    def __init__(
        self, kube: Kube, platform: Platform, *, clock: Callable[[], int], directory: Path
    ) -> None:
        """`clock` is in milliseconds; `directory` is for the operator's own files."""
        self._platform = platform
        self._secrets = IssuedSecrets(kube, clock)
        self._lock = asyncio.Lock()
        self._own: Entries | None = None
        self._directory = directory
        self.files = PeerTls(
            enabled=True,
            cert_file=str(directory / CERTIFICATE),
            key_file=str(directory / KEY),
            ca_file=str(directory / CA_BUNDLE),
        )
        """The operator's own certificate, once `renew` has returned."""

    async def renew(self) -> CertificateAuthority:
        """Renew the CA and the operator's own certificate if that is due; return the CA."""
        async with self._lock:
            metadata = {
                "name": CA_SECRET,
                "namespace": self._platform.namespace,
                "labels": {"app": names.OPERATOR_APP},
            }
            trusted = [self._own] if self._own else []
            ca = await self._secrets.authority(metadata, "Kafscale control plane", trusted)
            holder = Holder(names.OPERATOR_APP, self._own_hosts())
            own = ca.issue(holder, self._own, self._secrets.now())
            if own != self._own:
                await asyncio.to_thread(_write_files, self._directory, own)
                self._own = own
            return ca

    async def reconcile(self, cluster: Cluster) -> None:
        """Write the Secrets of a cluster that are missing, due or different."""
        ca = await self.renew()
        for name, holder in (
            (names.control_tls(cluster), _broker(cluster, self._platform)),
            (names.control_client_tls(cluster), _client(cluster, self._platform)),
        ):
            await self._secrets.issue(ca, names.metadata(cluster, name, names.BROKER_APP), holder)

    def _own_hosts(self) -> list[str]:
        control = self._platform.control_address
        return [*([address.parse(control).host] if control else ()), *LOCAL_HOSTS]


def _broker(cluster: Cluster, platform: Platform) -> Holder:
    identity, _ = names.control_identities(cluster.namespace, cluster.name, platform)
    domain = platform.cluster_domain
    service = f"{names.broker(cluster)}.{cluster.namespace}.svc"
    hosts = [identity, f"*.{identity}", service, f"{service}.{domain}", *LOCAL_HOSTS]
    return Holder("kafscale-broker", hosts)


def _client(cluster: Cluster, platform: Platform) -> Holder:
    _, identity = names.control_identities(cluster.namespace, cluster.name, platform)
    return Holder("kafscale-control-client", [identity], is_server=False)


def _write_files(directory: Path, entries: Entries) -> None:
    """Write the files of a certificate, readable by this process only."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, content in entries.items():
        draft = directory / f"{name}.draft"
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        draft.rename(directory / name)
