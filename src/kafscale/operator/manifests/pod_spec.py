"""What a container is told of its own pod, as variables."""

from typing import Any, Final

POD_NAME: Final = "$(POD_NAME)"
"""What the kubelet replaces in commands, and in variables that come after the one of this name."""


def pod_name() -> dict[str, Any]:
    """The variable that `POD_NAME` stands for."""
    return field("POD_NAME", "metadata.name")


def field(name: str, path: str) -> dict[str, Any]:
    """A variable with what a field of the pod says."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
