"""Certificates as Secrets of the API server: what is missing, due or different is written.

Invariant: nothing is written that is as desired already, so that reconciling has no effect on pods
that mount the Secrets.
"""

import datetime as dt
from collections.abc import Callable, Iterable

from kafscale.observability.logging import get_logger
from kafscale.operator.certificates import (
    CertificateAuthority,
    Entries,
    Holder,
    entries_of,
    tls_secret,
)
from kafscale.operator.kube.api import SECRETS, Kube, Manifest

logger = get_logger(__name__)


class IssuedSecrets:
    """Reads and writes the Secrets of certificates."""

    def __init__(self, kube: Kube, clock: Callable[[], int]) -> None:
        """`clock` is in milliseconds."""
        self._kube = kube
        self._clock = clock

    def now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._clock() / 1000, dt.UTC)

    async def authority(
        self, metadata: Manifest, name: str, trusted: Iterable[Entries] = ()
    ) -> CertificateAuthority:
        """The CA of the Secret with this metadata; `trusted` are bundles that stay trusted."""
        existing = await self.read(metadata)
        ca = CertificateAuthority.of(existing, trusted, name, self.now())
        await self._write(metadata, ca.entries, existing)
        return ca

    async def issue(self, ca: CertificateAuthority, metadata: Manifest, holder: Holder) -> None:
        """Issue a certificate into the Secret with this metadata, unless it has a usable one."""
        existing = await self.read(metadata)
        await self._write(metadata, ca.issue(holder, existing, self.now()), existing)

    async def read(self, metadata: Manifest) -> Entries | None:
        secret = await self._kube.get(SECRETS, metadata["namespace"], metadata["name"])
        return entries_of(secret) if secret else None

    async def _write(self, metadata: Manifest, entries: Entries, existing: Entries | None) -> None:
        if entries == existing:
            return
        await self._kube.apply(tls_secret(metadata, entries))
        logger.info("certificate issued", namespace=metadata["namespace"], secret=metadata["name"])
