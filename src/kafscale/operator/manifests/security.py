"""Security contexts: what the "restricted" Pod Security Standard asks for, and a little more.

The law: no pod of ours is root, gains rights, or writes to its own image; whoever needs a place to
write mounts a volume there.
"""

from typing import Any, Final

USER_ID: Final = 65532
"""The user that images without a root call `nonroot`."""


def pod_security() -> dict[str, Any]:
    """The `securityContext` of a pod; its volumes belong to the group that its processes are in."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER_ID,
        "runAsGroup": USER_ID,
        "fsGroup": USER_ID,
        # A volume of many files would otherwise be walked through at every start.
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """The `securityContext` of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
