"""The bootstrap config of a managed etcd: whether members without data may start.

etcd ignores both settings once a member has data, so they matter only to members without. The
modes:

- FORMING: all members start together as a new cluster.
- FORMED: a member whose volume is empty does not start. It would return under its old identity,
  without what it has acknowledged and voted for; and if a majority lost their volumes at once, they
  would form an empty cluster that brokers take for the truth.
- JOINING: the member list contains a member that has never started; it may start empty.

They are in a ConfigMap, read when a container starts, because a changed template would restart all
pods.
"""

import enum
from typing import Any, Final

import msgspec

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.spec.cluster import Cluster

STATE: Final = "ETCD_INITIAL_CLUSTER_STATE"
MEMBERS: Final = "ETCD_INITIAL_CLUSTER"

_MODE: Final = "mode"
_SNAPSHOT: Final = "snapshot"
_NO_MEMBERS: Final = "none=https://none.invalid:2380"
"""A cluster in which no member finds its own name, so that etcd exits."""


class BootstrapMode(enum.Enum):
    """Whether members without data may start."""

    FORMING = "forming"
    FORMED = "formed"
    JOINING = "joining"


class BootstrapConfig(msgspec.Struct, frozen=True):
    """Which members may start without data, and from which snapshot."""

    mode: BootstrapMode
    members: str = ""
    """All members, in the format of `initial-cluster`; empty if FORMED."""
    snapshot: str = ""
    """The key of the snapshot that a forming cluster is restored from; empty for none."""


def name(cluster: Cluster) -> str:
    """The name of the ConfigMap."""
    return f"{names.etcd(cluster)}-bootstrap"


def config_map(cluster: Cluster, bootstrap: BootstrapConfig) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(cluster, name(cluster), names.ETCD_APP),
        "data": {
            STATE: "new" if bootstrap.mode is BootstrapMode.FORMING else "existing",
            MEMBERS: _NO_MEMBERS if bootstrap.mode is BootstrapMode.FORMED else bootstrap.members,
            _MODE: bootstrap.mode.value,
            _SNAPSHOT: bootstrap.snapshot,
        },
    }


def read(manifest: Manifest | None) -> BootstrapConfig | None:
    """The config in a ConfigMap; None if there is none, or it is invalid."""
    data = (manifest or {}).get("data") or {}
    try:
        mode = BootstrapMode(data[_MODE])
    except (KeyError, ValueError):
        return None
    members = "" if mode is BootstrapMode.FORMED else data.get(MEMBERS, "")
    return BootstrapConfig(mode, members, data.get(_SNAPSHOT, ""))


def variables(cluster: Cluster) -> list[dict[str, Any]]:
    """Both settings as environment of a container."""
    return [
        {"name": each, "valueFrom": {"configMapKeyRef": {"name": name(cluster), "key": each}}}
        for each in (STATE, MEMBERS)
    ]
