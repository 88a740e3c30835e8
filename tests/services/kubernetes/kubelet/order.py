"""What a container is to be, worked out from its pod: the order that `shim` carries out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from services.kubernetes.kubelet import filesystem, images
from services.kubernetes.kubelet.api import Manifest
from services.kubernetes.kubelet.environment import ConfigError, expand, variables
from services.kubernetes.kubelet.view import View
from services.kubernetes.kubelet.volumes import Volumes
from services.kubernetes.namespaces import GATEWAY


class StartError(Exception):
    """A container cannot be started, as yet."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """All that has to be known to start a container."""

    sandbox: int
    """The number of the sandbox's process."""
    root: str
    """An empty directory, which the root is put on top of."""
    directories: Sequence[str]
    links: Mapping[str, str]
    files: Mapping[str, str]
    mounts: Sequence[filesystem.Mount]
    is_read_only: bool
    gives_up_privileges: bool
    command: Sequence[str]
    environment: Mapping[str, str]
    directory: str


class Orders:
    """Writes the orders of one pod's containers."""

    def __init__(self, view: View, volumes: Volumes, directory: Path) -> None:
        self._view = view
        self._volumes = volumes
        self._directory = directory

    def write(self, pod: Manifest, spec: Manifest, sandbox: int) -> Order:
        """The order of a container, or a `StartError`."""
        image = images.find(spec["image"])
        if image is None:
            raise StartError("ErrImagePull", f"nobody knows an image {spec['image']}")
        security = pod["spec"].get("securityContext", {}) | spec.get("securityContext", {})
        if security.get("runAsNonRoot") and not security.get("runAsUser", image.user):
            complaint = "container has runAsNonRoot and image will run as root"
            raise StartError("CreateContainerConfigError", complaint)
        known = self._variables(pod, spec, image)
        links, mounts = filesystem.machine()
        root = self._directory / spec["name"]
        root.mkdir(parents=True, exist_ok=True)
        return Order(
            sandbox=sandbox,
            root=str(root),
            directories=filesystem.OWN,
            links=links,
            files=filesystem.own_files(pod, GATEWAY),
            mounts=mounts + self._mounts(spec, known),
            is_read_only=security.get("readOnlyRootFilesystem", False),
            gives_up_privileges="ALL" in security.get("capabilities", {}).get("drop", ()),
            command=[expand(word, known) for word in _command(spec, image)],
            environment=known,
            directory=spec.get("workingDir", "/"),
        )

    def _variables(self, pod: Manifest, spec: Manifest, image: images.Image) -> dict[str, str]:
        store = self._view.store(pod["metadata"]["namespace"])
        try:
            return variables(pod, spec, image.environment, self._view.services, store)
        except ConfigError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None

    def _mounts(self, spec: Manifest, known: Mapping[str, str]) -> list[filesystem.Mount]:
        return [
            filesystem.Mount(
                source=str(self._volumes.source(mount, known)),
                target=mount["mountPath"],
                is_read_only=mount.get("readOnly", False),
            )
            for mount in spec.get("volumeMounts", ())
        ]


def _command(spec: Manifest, image: images.Image) -> Sequence[str]:
    """What a pod says, and for the rest what its image does.

    >>> image = images.Image(entrypoint=["a"], arguments=["b"], environment={})
    >>> _command({}, image), _command({"args": ["x"]}, image), _command({"command": ["y"]}, image)
    (['a', 'b'], ['a', 'x'], ['y'])
    """
    if "command" in spec:
        return [*spec["command"], *spec.get("args", ())]
    return [*image.entrypoint, *spec.get("args", image.arguments)]
