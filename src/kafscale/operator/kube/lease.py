"""Leader election among operators with a Lease of Kubernetes.

Invariants:

1. A leader stops, by its own clock, `GRACE_SECONDS` before others may acquire the lease: it counts
   from its request, others from when they observed the renewal.
2. The lease is acquired only with the resourceVersion that was read (compare and set), and only if
   its holder has not renewed it for the whole duration by our own clock. Timestamps that others
   write are never compared with our clock.
3. An operator that stops orderly releases the lease, so that the next one need not wait.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from kafscale.errors import KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import LEASES, Kind, Manifest

logger = get_logger(__name__)

DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 3.0
GRACE_SECONDS: Final = 5.0
"""How long before the end of the lease its holder stops acting as leader."""


class LeaseApi(Protocol):
    """The part of the API server that leader election needs: reads and versioned writes."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None: ...

    async def create(self, manifest: Manifest) -> Manifest | None: ...

    async def replace(self, manifest: Manifest) -> Manifest | None: ...


class Leadership:
    """One candidate for a lease."""

    def __init__(
        self,
        kube: LeaseApi,
        *,
        namespace: str,
        name: str,
        identity: str,
        monotonic: Callable[[], float],
        duration_seconds: int = DURATION_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """`monotonic` is a clock in seconds."""
        assert renew_seconds + grace_seconds < duration_seconds
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._monotonic = monotonic
        self._duration_seconds = duration_seconds
        self._renew_seconds = renew_seconds
        self._grace_seconds = grace_seconds
        self._observed: tuple[str, float] = ("", 0.0)
        """The resourceVersion last observed, and when it was first observed."""
        self._valid_until = 0.0
        self.holder = ""
        """The identity of the current leader, as far as known."""

    @property
    def is_leader(self) -> bool:
        return self._monotonic() < self._valid_until

    async def acquire(self) -> None:
        """Wait until this operator is the leader."""
        while True:
            if await self._try_acquire_or_renew():
                break
            await asyncio.sleep(self._renew_seconds)
        logger.info("leader lease acquired", identity=self._identity)

    async def renew(self) -> None:
        """Renew the lease; returns when it is lost."""
        while self.is_leader:
            await asyncio.sleep(min(self._renew_seconds, self._remaining_seconds()))
            with contextlib.suppress(TimeoutError):  # A later response is useless.
                async with asyncio.timeout(self._remaining_seconds()):
                    await self._try_acquire_or_renew()
        logger.warning("leader lease lost", identity=self._identity, holder=self.holder)

    async def release(self) -> None:
        """Release the lease if this operator holds it."""
        self._valid_until = 0.0
        try:
            lease = await self._kube.get(LEASES, self._namespace, self._name)
            if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                await self._kube.replace(lease)
        except KubeError as error:
            logger.warning("leader lease not released", error=str(error))

    def _remaining_seconds(self) -> float:
        """How many seconds this operator stays leader without another renewal."""
        return self._valid_until - self._monotonic()

    async def _try_acquire_or_renew(self) -> bool:
        """Acquire or renew the lease if possible; return whether this operator is the leader."""
        requested_at = self._monotonic()
        try:
            if await self._acquire_or_renew():
                self._valid_until = requested_at + self._duration_seconds - self._grace_seconds
                self.holder = self._identity
        except KubeError as error:
            logger.warning("leader lease not renewed", error=str(error))
        return self.is_leader

    async def _acquire_or_renew(self) -> bool:
        lease = await self._kube.get(LEASES, self._namespace, self._name)
        if lease is None:
            return await self._kube.create(self._manifest()) is not None
        spec = lease["spec"]
        self.holder = spec.get("holderIdentity") or ""
        if self.holder not in {"", self._identity} and not self._is_expired(lease):
            return False
        changes = 0 if self.holder == self._identity else 1
        lease["spec"] = self._spec(
            transitions=spec.get("leaseTransitions", 0) + changes,
            acquired=spec.get("acquireTime") if not changes else None,
        )
        written = await self._kube.replace(lease)
        return written is not None

    def _is_expired(self, lease: Manifest) -> bool:
        """Whether the holder has not renewed for the whole duration, by our own clock."""
        version = lease["metadata"]["resourceVersion"]
        if self._observed[0] != version:
            self._observed = (version, self._monotonic())
        seconds = lease["spec"].get("leaseDurationSeconds", self._duration_seconds)
        return bool(self._monotonic() - self._observed[1] >= seconds)

    def _manifest(self) -> Manifest:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(transitions=0, acquired=None),
        }

    def _spec(self, *, transitions: int, acquired: str | None) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration_seconds,
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
