"""Which node a pod comes to: one that it may be on, with as few of its kind around as possible."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafscale.operator.kube.kinds import PODS
from services.kubernetes.kubelet.api import STRATEGIC, Api
from services.kubernetes.kubelet.status import now

Manifest = Mapping[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def choose(pod: Manifest, nodes: Iterable[Manifest], pods: Iterable[Manifest]) -> str | None:
    """The name of the best node, if there is any."""
    places = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in nodes}
    # The labels of all the other pods' nodes, by pod.
    settled = [
        (other, places[other["spec"]["nodeName"]])
        for other in pods
        if other["spec"].get("nodeName") in places and not _is_over(other)
    ]
    possible = [
        node["metadata"]["name"]
        for node in nodes
        if not node["spec"].get("unschedulable") and _may_be_on(pod, node, settled)
    ]
    alike = [place for other, place in settled if _family(other) == _family(pod)]

    def crowd(name: str) -> tuple[int, int, int, str]:
        here = places[name]
        in_zone = sum(place.get(ZONE) == here.get(ZONE) for place in alike)
        on_node = sum(place.get(HOST) == here.get(HOST) for place in alike)
        anybody = sum(place.get(HOST) == here.get(HOST) for _, place in settled)
        return in_zone, on_node, anybody, name

    return min(possible, key=crowd, default=None)


async def bind(api: Api, pod: Manifest, node: str) -> None:
    metadata = pod["metadata"]
    named = {key: metadata[key] for key in ("name", "namespace", "uid")}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": target}
    await api.create(PODS.path(named["namespace"], named["name"], "binding"), binding)


async def refuse(api: Api, pod: Manifest) -> None:
    """Say of a pod that there is no node for it."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no node is right for this pod",
        "lastTransitionTime": now(),
    }
    metadata = pod["metadata"]
    path = PODS.path(metadata["namespace"], metadata["name"], "status")
    patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
    await api.patch(path, patch, STRATEGIC)


def _may_be_on(
    pod: Manifest, node: Manifest, settled: Iterable[tuple[Manifest, Mapping[str, str]]]
) -> bool:
    labels, spec = node["metadata"].get("labels", {}), pod["spec"]
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return False
    affinity = spec.get("affinity", {})
    terms = affinity.get("nodeAffinity", {}).get(_REQUIRED, {}).get("nodeSelectorTerms")
    if terms is not None and not any(matches(term, labels) for term in terms):
        return False
    for term in affinity.get("podAntiAffinity", {}).get(_REQUIRED, ()):
        key = term["topologyKey"]
        for other, place in settled:
            is_near = key in labels and place.get(key) == labels[key]
            is_here = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            others = other["metadata"].get("labels", {})
            if is_near and is_here and matches(term.get("labelSelector", {}), others):
                return False
    return True


def matches(selector: Manifest, labels: Mapping[str, str]) -> bool:
    """Whether labels are as a selector says.

    >>> matches({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {"a": "1"})
    True
    >>> matches({"matchLabels": {"a": "1"}}, {"b": "1"})
    False
    """
    tests: Mapping[str, Callable[[str, Manifest], bool]] = {
        "In": lambda key, rule: labels.get(key) in rule["values"],
        "NotIn": lambda key, rule: labels.get(key) not in rule["values"],
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        tests[rule["operator"]](rule["key"], rule) for rule in selector.get("matchExpressions", ())
    )


def _is_over(pod: Manifest) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def _family(pod: Manifest) -> tuple[str, ...]:
    """Who made it; a pod that nobody made is alone."""
    owners = pod["metadata"].get("ownerReferences") or [pod["metadata"]]
    return tuple(owner["uid"] for owner in owners)
