"""The "restricted" Pod Security Standard, as documented by Kubernetes: violations of a template."""

from collections.abc import Iterator
from typing import Any

VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


def violations(template: dict[str, Any]) -> list[str]:
    """Every rule that a template violates, including those of the "baseline" standard."""
    return list(_violations(template["spec"]))


def _violations(pod: dict[str, Any]) -> Iterator[str]:
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"{key} is set"
    for volume in pod.get("volumes", []):
        if not set(volume) - {"name"} <= VOLUMES:
            yield f"volume {volume['name']} is of a forbidden type"
    pod_context = pod.get("securityContext", {})
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        for problem in _of_container(container, pod_context):
            yield f"container {container['name']}: {problem}"


def _of_container(container: dict[str, Any], pod: dict[str, Any]) -> Iterator[str]:
    own = container.get("securityContext", {})
    both = {**pod, **own}
    if own.get("privileged"):
        yield "is privileged"
    if own.get("allowPrivilegeEscalation") is not False:
        yield "may gain privileges"
    if not both.get("runAsNonRoot"):
        yield "may run as root"
    if both.get("runAsUser") == 0:
        yield "runs as root"
    if both.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
        yield "has no seccomp profile"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []):
        yield "keeps capabilities"
    if set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
        yield "adds capabilities"
    if any(port.get("hostPort") for port in container.get("ports", [])):
        yield "takes a port of its host"
