"""The Kubernetes API as the operator uses it: a Protocol with the guarantees of each verb.

Invariants: everything that the operator creates it applies server-side as field manager
`FIELD_MANAGER`, so that fields set by others stay theirs. An object that does not exist is `None`,
never an error. All other failures are a `KubeError` with a readable message.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kafscale.operator.kube.kinds import Kind

Manifest = dict[str, Any]

FIELD_MANAGER: Final = "kafscale-operator"


class Kube(Protocol):
    """The API server."""

    async def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply; return the object as it is then."""

    async def apply_status(self, manifest: Manifest) -> None:
        """Server-side apply of the `status` subresource; does nothing if the object is gone."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None: ...

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """All objects of a kind with these labels, in one namespace or in all."""

    async def create(self, manifest: Manifest) -> Manifest | None:
        """Create an object; None if it exists already."""

    async def merge_patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        """Apply a JSON merge patch (RFC 7386) to an object; None if it is gone."""

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> bool:
        """Delete an object, with `uid` only that very one; return whether it existed."""

    async def supports(self, kind: Kind) -> bool:
        """Whether the API server has resources of this kind."""

    async def record_event(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Create an Event about an object; a failure is logged, not raised."""
