"""What the operator asks of Kubernetes: the verbs, with what each promises.

The laws: whatever the operator makes it applies, on the server's side and as `FIELD_MANAGER`, so
that fields which others set stay theirs; what does not exist is `None`, never an error; any other
trouble is a `KubeError` with a sentence for people.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kafscale.operator.kube.kinds import Kind

Manifest = dict[str, Any]

FIELD_MANAGER: Final = "kafscale-operator"


class Kube(Protocol):
    """The API server."""

    async def apply(self, manifest: Manifest) -> Manifest:
        """Make an object be like this in the fields that are given; how it is now."""

    async def apply_status(self, manifest: Manifest) -> None:
        """The same for the `status` alone; nothing happens if the object is gone."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None: ...

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        """All objects of a kind, in one namespace or in all, that have these labels."""

    async def create(self, manifest: Manifest) -> Manifest | None:
        """Make an object; None if there is one already."""

    async def merge(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        """Merge a patch into an object (RFC 7386); None if it is gone."""

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> bool:
        """Delete an object, only this very one if `uid` is given; whether there was one."""

    async def knows(self, kind: Kind) -> bool:
        """Whether the API server has objects of this kind at all."""

    async def tell(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Leave an Event about an object; that it could not be left is logged, not raised."""
