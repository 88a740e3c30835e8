"""The spec of a container's process, derived from its pod, for `shim`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from services.kubernetes.kubelet import filesystem, images
from services.kubernetes.kubelet.api import Manifest
from services.kubernetes.kubelet.cluster_cache import ClusterCache
from services.kubernetes.kubelet.environment import ConfigError, expand, variables
from services.kubernetes.kubelet.volumes import Volumes
from services.kubernetes.namespaces import GATEWAY


class StartError(Exception):
    """A container cannot be started yet."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ContainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is needed to start a container."""

    sandbox: int
    """The process id of the sandbox."""
    root: str
    """An empty directory, on which the root is mounted."""
    directories: Sequence[str]
    links: Mapping[str, str]
    files: Mapping[str, str]
    mounts: Sequence[filesystem.Mount]
    is_read_only: bool
    drops_capabilities: bool
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: str


class ContainerSpecs:
    """Builds the specs of one pod's containers."""

    def __init__(self, view: ClusterCache, volumes: Volumes, directory: Path) -> None:
        self._view = view
        self._volumes = volumes
        self._directory = directory

    def write(self, pod: Manifest, spec: Manifest, sandbox: int) -> ContainerSpec:
        """The spec of a container; raises `StartError`."""
        image = images.find(spec["image"])
        if image is None:
            raise StartError("ErrImagePull", f"unknown image {spec['image']}")
        security = pod["spec"].get("securityContext", {}) | spec.get("securityContext", {})
        if security.get("runAsNonRoot") and not security.get("runAsUser", image.user):
            message = "container has runAsNonRoot and image will run as root"
            raise StartError("CreateContainerConfigError", message)
        environment = self._variables(pod, spec, image)
        links, mounts = filesystem.machine()
        root = self._directory / spec["name"]
        root.mkdir(parents=True, exist_ok=True)
        return ContainerSpec(
            sandbox=sandbox,
            root=str(root),
            directories=filesystem.OWN,
            links=links,
            files=filesystem.own_files(pod, GATEWAY),
            mounts=mounts + self._mounts(spec, environment),
            is_read_only=security.get("readOnlyRootFilesystem", False),
            drops_capabilities="ALL" in security.get("capabilities", {}).get("drop", ()),
            command=[expand(word, environment) for word in _command(spec, image)],
            environment=environment,
            directory=spec.get("workingDir", "/"),
        )

    def _variables(self, pod: Manifest, spec: Manifest, image: images.Image) -> dict[str, str]:
        store = self._view.store(pod["metadata"]["namespace"])
        try:
            return variables(pod, spec, image.environment, self._view.services, store)
        except ConfigError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None

    def _mounts(self, spec: Manifest, environment: Mapping[str, str]) -> list[filesystem.Mount]:
        return [
            filesystem.Mount(
                source=str(self._volumes.source(mount, environment)),
                target=mount["mountPath"],
                is_read_only=mount.get("readOnly", False),
            )
            for mount in spec.get("volumeMounts", ())
        ]


def _command(spec: Manifest, image: images.Image) -> Sequence[str]:
    """The command of the pod; what it leaves out is the image's.

    >>> image = images.Image(entrypoint=["a"], arguments=["b"], environment={})
    >>> _command({}, image), _command({"args": ["x"]}, image), _command({"command": ["y"]}, image)
    (['a', 'b'], ['a', 'x'], ['y'])
    """
    if "command" in spec:
        return [*spec["command"], *spec.get("args", ())]
    return [*image.entrypoint, *spec.get("args", image.arguments)]
