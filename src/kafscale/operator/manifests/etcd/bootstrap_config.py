"""Who may begin with an empty volume: what pods of a managed etcd are told if they have no data.

etcd forgets these two settings as soon as a member has data, so they matter only to one that has
none. The laws:

- While the cluster is FORMING, all members begin together, as a new one.
- Then the door is CLOSED: a member whose volume is empty does not start. It would come back under
  its old identity, having forgotten what it has acknowledged and voted for; and if most members
  were to lose their volumes at once, they would agree on an empty cluster, and brokers believe it.
- It is OPEN while a member is in the list that has never started: that one may begin.

They are a ConfigMap, read when a container starts, because a template that changed would have all
pods restarted.
"""

import enum
from typing import Any, Final

import msgspec

from kafscale.operator.kube.api import Manifest
from kafscale.operator.manifests import names
from kafscale.operator.spec.cluster import Cluster

STATE: Final = "ETCD_INITIAL_CLUSTER_STATE"
MEMBERS: Final = "ETCD_INITIAL_CLUSTER"

_DOOR: Final = "door"
_SNAPSHOT: Final = "snapshot"
_NOBODY: Final = "closed=https://closed.invalid:2380"
"""A cluster that no member finds its own name in, at which it gives up."""


class Door(enum.Enum):
    """Whether members without data may start."""

    FORMING = "forming"
    CLOSED = "closed"
    OPEN = "open"


class Admission(msgspec.Struct, frozen=True):
    """Who may begin, and with what."""

    door: Door
    members: str = ""
    """All that are in the cluster, as etcd wants to be told; empty behind a closed door."""
    snapshot: str = ""
    """The key of the snapshot that a forming cluster begins with; empty for an empty one."""


def name(cluster: Cluster) -> str:
    """The ConfigMap's name."""
    return f"{names.etcd(cluster)}-admission"


def config_map(cluster: Cluster, admission: Admission) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(cluster, name(cluster), names.ETCD_APP),
        "data": {
            STATE: "new" if admission.door is Door.FORMING else "existing",
            MEMBERS: _NOBODY if admission.door is Door.CLOSED else admission.members,
            _DOOR: admission.door.value,
            _SNAPSHOT: admission.snapshot,
        },
    }


def read(found: Manifest | None) -> Admission | None:
    """What a ConfigMap says; None where there is none, or somebody has made another thing of it."""
    data = (found or {}).get("data") or {}
    try:
        door = Door(data[_DOOR])
    except (KeyError, ValueError):
        return None
    members = "" if door is Door.CLOSED else data.get(MEMBERS, "")
    return Admission(door, members, data.get(_SNAPSHOT, ""))


def variables(cluster: Cluster) -> list[dict[str, Any]]:
    """The two settings, as environment of a container."""
    return [
        {"name": each, "valueFrom": {"configMapKeyRef": {"name": name(cluster), "key": each}}}
        for each in (STATE, MEMBERS)
    ]
