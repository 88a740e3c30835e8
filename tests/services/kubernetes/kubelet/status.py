"""The status of a pod: its phase, conditions, and the states of its containers."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.kubernetes.kubelet.container import Container

Status = dict[str, Any]


def now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def phase(policy: str, initial: Sequence["Container"], containers: Sequence["Container"]) -> str:
    """The phase of a pod, from the states of its containers."""
    if policy == "Never" and any(container.exit_code for container in initial):
        return "Failed"
    if any(container.exit_code != 0 for container in initial):
        return "Pending"
    if all(container.exit_code is not None for container in containers):
        return "Failed" if any(container.exit_code for container in containers) else "Succeeded"
    has_started = all("waiting" not in each.state or each.last_state for each in containers)
    return "Running" if has_started else "Pending"


def container_status(container: "Container") -> Status:
    """The status of one container."""
    image = container.spec["image"]
    return {
        "name": container.spec["name"],
        "image": image,
        "imageID": image,
        "state": dict(container.state),
        "lastState": dict(container.last_state),
        "ready": container.is_ready,
        "started": container.is_started,
        "restartCount": container.restarts_count,
    }


def conditions(
    of_phase: str, initial: Sequence["Container"], containers: Sequence["Container"]
) -> dict[str, bool]:
    """The conditions of a pod that has a node."""
    is_ready = of_phase == "Running" and all(container.is_ready for container in containers)
    return {
        "PodScheduled": True,
        "Initialized": all(container.exit_code == 0 for container in initial),
        "ContainersReady": is_ready,
        "Ready": is_ready,
    }


class Conditions:
    """Remembers the transition time of each condition."""

    def __init__(self) -> None:
        self._known: dict[str, Status] = {}

    def update(self, statuses: Mapping[str, bool], of_phase: str) -> list[Status]:
        for kind, holds in statuses.items():
            value = "True" if holds else "False"
            if self._known.get(kind, {}).get("status") != value:
                self._known[kind] = {"type": kind, "status": value, "lastTransitionTime": now()}
            is_over = of_phase in {"Succeeded", "Failed"}
            reason = "PodCompleted" if is_over else "ContainersNotReady"
            self._known[kind]["reason"] = None if holds else reason
        return [dict(condition) for condition in self._known.values()]
