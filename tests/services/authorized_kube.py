"""An API server in memory as the operator's account sees it.

    operator = AuthorizedKube(kube)   the operator gets this one, tests act on `kube` itself

Invariant: a request that config/rbac does not grant fails as on a real API server. `used` has the
permissions that requests needed so far.
"""

import asyncio
import http
from collections.abc import AsyncIterator, Mapping

from kafscale.errors import KubeError
from kafscale.operator.kube.api import EVENTS, Kind, Manifest, kind_of
from services.memory_kube import MemoryKube, ObjectKey
from services.rbac import OPERATOR_FILES, Permission, granted


class AuthorizedKube:
    """A `Kube` that checks permissions, on one that does not."""

    def __init__(self, kube: MemoryKube) -> None:
        self.used: set[Permission] = set()
        self._kube = kube
        self._granted = granted(*OPERATOR_FILES)

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        self._check("get", kind)
        return await self._kube.get(kind, namespace, name)

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        self._check("list", kind)
        return await self._kube.list(kind, namespace, labels)

    async def watch(
        self, kind: Kind, _namespace: str = "", _selector: str = ""
    ) -> AsyncIterator[Manifest]:
        """Yield nothing, and never end."""
        self._check("watch", kind)
        await asyncio.Event().wait()
        yield {}

    async def supports(self, kind: Kind) -> bool:
        """Discovery, which every account may read."""
        return await self._kube.supports(kind)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply needs `create` as well for an object that does not exist."""
        kind, metadata = kind_of(manifest), manifest["metadata"]
        self._check("patch", kind)
        if ObjectKey(kind, metadata.get("namespace", ""), metadata["name"]) not in (
            self._kube.objects
        ):
            self._check("create", kind)
        return await self._kube.apply(manifest)

    async def apply_status(self, manifest: Manifest) -> None:
        self._check("patch", kind_of(manifest), "status")
        await self._kube.apply_status(manifest)

    async def create(self, manifest: Manifest) -> Manifest | None:
        self._check("create", kind_of(manifest))
        return await self._kube.create(manifest)

    async def replace(self, manifest: Manifest) -> Manifest | None:
        self._check("update", kind_of(manifest))
        return await self._kube.replace(manifest)

    async def merge_patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        self._check("patch", kind, subresource)
        return await self._kube.merge_patch(kind, namespace, name, patch, subresource=subresource)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> bool:
        self._check("delete", kind)
        return await self._kube.delete(kind, namespace, name, uid=uid)

    async def record_event(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        self._check("create", EVENTS)
        await self._kube.record_event(about, reason, message, warning=warning)

    def _check(self, verb: str, kind: Kind, subresource: str = "") -> None:
        group = kind.api_version.rpartition("/")[0]
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        needed = Permission(group, resource, verb)
        if needed not in self._granted:
            raise KubeError(f"forbidden: {verb} {resource} in {group!r}", http.HTTPStatus.FORBIDDEN)
        self.used.add(needed)
