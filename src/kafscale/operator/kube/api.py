"""The Kubernetes API as the operator uses it: kinds, and the guarantees of each verb.

Invariants: everything that the operator creates it applies server-side as field manager
`FIELD_MANAGER`, so that fields set by others stay theirs. An object that does not exist is `None`,
never an error. All other failures are a `KubeError` with a readable message.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from kafscale.errors import KubeError

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.:]{0,251}[a-z0-9])?")
"""Names in paths. Anything else could lead to another object: HTTP clients resolve `..`."""


class Kind(msgspec.Struct, frozen=True):
    """A kind and its path at the API server."""

    api_version: str
    kind: str
    plural: str
    is_namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of an object, or of its collection.

        >>> PODS.path("default", "web-0", "status")
        '/api/v1/namespaces/default/pods/web-0/status'
        >>> STATEFUL_SETS.path()
        '/apis/apps/v1/statefulsets'

        Raises `KubeError` if a part is not a valid name, for example one from a spec.
        """
        for part in (namespace, name, subresource):
            if part and not _NAME.fullmatch(part):
                raise KubeError(f"{part[:300]!r} is not a valid name of a Kubernetes object")
        root = "/api" if self.api_version == "v1" else "/apis"
        inside = f"/namespaces/{namespace}" if namespace and self.is_namespaced else ""
        parts = [f"{root}/{self.api_version}{inside}", self.plural, name, subresource]
        return "/".join(part for part in parts if part)


PODS: Final = Kind("v1", "Pod", "pods")
NODES: Final = Kind("v1", "Node", "nodes", is_namespaced=False)
SERVICES: Final = Kind("v1", "Service", "services")
SECRETS: Final = Kind("v1", "Secret", "secrets")
CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNTS: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
VOLUME_CLAIMS: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
EVENTS: Final = Kind("v1", "Event", "events")
STATEFUL_SETS: Final = Kind("apps/v1", "StatefulSet", "statefulsets")
AUTOSCALERS: Final = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
DISRUPTION_BUDGETS: Final = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICIES: Final = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
ENDPOINT_SLICES: Final = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
ROLES: Final = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDINGS: Final = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
LEASES: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
SERVICE_MONITORS: Final = Kind("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")
CLUSTERS: Final = Kind("kafscale.io/v1alpha1", "KafscaleCluster", "kafscaleclusters")
TOPICS: Final = Kind("kafscale.io/v1alpha1", "KafscaleTopic", "kafscaletopics")

ALL: Final = tuple(each for each in vars().values() if isinstance(each, Kind))
"""`kind_of` finds the kinds of manifests here, so also those that no other module names."""


def kind_of(manifest: dict[str, object]) -> Kind:
    """The kind of a manifest; it must be one of `ALL`."""
    for kind in ALL:
        if (kind.api_version, kind.kind) == (manifest["apiVersion"], manifest["kind"]):
            return kind
    raise AssertionError(f"{manifest['apiVersion']} {manifest['kind']} is not a known kind")


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
