"""Chooses a node for a pod: a feasible one, with the fewest sibling pods."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kafscale.operator.kube.api import PODS
from services.kubernetes.kubelet.api import STRATEGIC, Api
from services.kubernetes.kubelet.status import now

Manifest = Mapping[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def choose(pod: Manifest, nodes: Iterable[Manifest], pods: Iterable[Manifest]) -> str | None:
    """The name of the best node, if there is any."""
    node_labels = {node["metadata"]["name"]: node["metadata"].get("labels", {}) for node in nodes}
    # All other pods with the labels of their nodes.
    scheduled = [
        (other, node_labels[other["spec"]["nodeName"]])
        for other in pods
        if other["spec"].get("nodeName") in node_labels and not _is_over(other)
    ]
    possible = [
        node["metadata"]["name"]
        for node in nodes
        if not node["spec"].get("unschedulable") and _is_feasible(pod, node, scheduled)
    ]
    siblings = [
        labels_of_node
        for other, labels_of_node in scheduled
        if _owner_uids(other) == _owner_uids(pod)
    ]

    def load_of(name: str) -> tuple[int, int, int, str]:
        own_labels = node_labels[name]
        in_zone = sum(
            labels_of_node.get(ZONE) == own_labels.get(ZONE) for labels_of_node in siblings
        )
        on_node = sum(
            labels_of_node.get(HOST) == own_labels.get(HOST) for labels_of_node in siblings
        )
        on_node_total = sum(
            labels_of_node.get(HOST) == own_labels.get(HOST) for _, labels_of_node in scheduled
        )
        return in_zone, on_node, on_node_total, name

    return min(possible, key=load_of, default=None)


async def bind(api: Api, pod: Manifest, node: str) -> None:
    metadata = pod["metadata"]
    named = {key: metadata[key] for key in ("name", "namespace", "uid")}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": named, "target": target}
    await api.create(PODS.path(named["namespace"], named["name"], "binding"), binding)


async def mark_unschedulable(api: Api, pod: Manifest) -> None:
    """Report that there is no node for a pod."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no node is feasible for this pod",
        "lastTransitionTime": now(),
    }
    metadata = pod["metadata"]
    path = PODS.path(metadata["namespace"], metadata["name"], "status")
    patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
    await api.patch(path, patch, STRATEGIC)


def _is_feasible(
    pod: Manifest, node: Manifest, scheduled: Iterable[tuple[Manifest, Mapping[str, str]]]
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
        for other, labels_of_node in scheduled:
            is_same_topology = key in labels and labels_of_node.get(key) == labels[key]
            is_same_namespace = other["metadata"]["namespace"] == pod["metadata"]["namespace"]
            others = other["metadata"].get("labels", {})
            if (
                is_same_topology
                and is_same_namespace
                and matches(term.get("labelSelector", {}), others)
            ):
                return False
    return True


def matches(selector: Manifest, labels: Mapping[str, str]) -> bool:
    """Whether labels match a selector.

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


def _owner_uids(pod: Manifest) -> tuple[str, ...]:
    """The uids of its owners; a pod without owners is its own."""
    owners = pod["metadata"].get("ownerReferences") or [pod["metadata"]]
    return tuple(owner["uid"] for owner in owners)
