"""Who leads: one operator of several, by a Lease of Kubernetes.

The laws:

1. A leader stops leading, by its own clock, `GRACE` before others may take its place: it counts
   from when it asked, they count from when they saw.
2. A lease is taken only with the version that was read (compare and set), and only when its holder
   has not changed it for its whole duration by our own clock. What others write about time is never
   compared with our clock.
3. Who stops on purpose gives the lease back, and the next one need not wait.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from kafscale.errors import KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import LEASES, Kind

log = get_logger(__name__)

DURATION_SECONDS: Final = 15
RENEW_SECONDS: Final = 3.0
GRACE_SECONDS: Final = 5.0
"""The leader's part of a lease ends this much before the lease does."""


class Versioned(Protocol):
    """What is needed of the API server: reading and writing with versions."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None: ...

    async def create(self, manifest: Manifest) -> Manifest | None: ...

    async def replace(self, manifest: Manifest) -> Manifest | None: ...


class Leadership:
    """One contender for a lease."""

    def __init__(
        self,
        kube: Versioned,
        *,
        namespace: str,
        name: str,
        identity: str,
        steady: Callable[[], float],
        duration_seconds: int = DURATION_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """`steady` is a clock in seconds that never goes back."""
        assert renew_seconds + grace_seconds < duration_seconds
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._steady = steady
        self._duration_seconds = duration_seconds
        self._renew_seconds = renew_seconds
        self._grace_seconds = grace_seconds
        self._seen: tuple[str, float] = ("", 0.0)
        """The version of the lease as it was last seen, and since when it has been so."""
        self._proven_until = 0.0
        self.holder = ""
        """Who leads, as far as is known."""

    @property
    def leads(self) -> bool:
        return self._steady() < self._proven_until

    async def acquire(self) -> None:
        """Wait until we lead."""
        while True:
            if await self._try():
                break
            await asyncio.sleep(self._renew_seconds)
        log.info("leading", identity=self._identity)

    async def keep(self) -> None:
        """Keep leading; returns when that is over."""
        while self.leads:
            await asyncio.sleep(min(self._renew_seconds, self._left()))
            with contextlib.suppress(TimeoutError):  # An answer that comes later is worth nothing.
                async with asyncio.timeout(self._left()):
                    await self._try()
        log.warning("not leading any more", identity=self._identity, holder=self.holder)

    async def release(self) -> None:
        """Give the lease back, if it is ours."""
        self._proven_until = 0.0
        try:
            lease = await self._kube.get(LEASES, self._namespace, self._name)
            if lease is not None and lease["spec"].get("holderIdentity") == self._identity:
                lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                await self._kube.replace(lease)
        except KubeError as error:
            log.warning("lease not given back", error=str(error))

    def _left(self) -> float:
        """For how many seconds we lead, if nothing more happens."""
        return self._proven_until - self._steady()

    async def _try(self) -> bool:
        """Take or renew the lease, if that can be; whether we lead."""
        asked = self._steady()
        try:
            if await self._take():
                self._proven_until = asked + self._duration_seconds - self._grace_seconds
                self.holder = self._identity
        except KubeError as error:
            log.warning("lease not renewed", error=str(error))
        return self.leads

    async def _take(self) -> bool:
        lease = await self._kube.get(LEASES, self._namespace, self._name)
        if lease is None:
            return await self._kube.create(self._manifest()) is not None
        spec = lease["spec"]
        self.holder = spec.get("holderIdentity") or ""
        if self.holder not in {"", self._identity} and not self._has_ended(lease):
            return False
        changes = 0 if self.holder == self._identity else 1
        lease["spec"] = self._spec(
            transitions=spec.get("leaseTransitions", 0) + changes,
            acquired=spec.get("acquireTime") if not changes else None,
        )
        written = await self._kube.replace(lease)
        return written is not None

    def _has_ended(self, lease: Manifest) -> bool:
        """Whether its holder has been silent for the whole duration, by our own clock."""
        version = lease["metadata"]["resourceVersion"]
        if self._seen[0] != version:
            self._seen = (version, self._steady())
        seconds = lease["spec"].get("leaseDurationSeconds", self._duration_seconds)
        return bool(self._steady() - self._seen[1] >= seconds)

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
