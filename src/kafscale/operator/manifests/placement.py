"""Where the pods of a part of a cluster stand: away from each other.

The law: all of it is a wish, for pods that stand close are better than pods that are missing.
"""

from typing import Any, Final

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"


def apart(labels: dict[str, str]) -> dict[str, Any]:
    """The `affinity` of pods of which no two are to be on a machine."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def spread(labels: dict[str, str], *topology_keys: str) -> list[dict[str, Any]]:
    """The `topologySpreadConstraints` of pods of which each place is to have as many."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
        }
        for key in topology_keys
    ]
