"""The volumes of a pod: directories of the machine, filled as the pod asks for."""

from collections.abc import Mapping
from pathlib import Path

from kafscale.operator.kube.api import SERVICE_ACCOUNTS
from services.kubernetes.kubelet import projection
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.cluster_cache import ClusterCache
from services.kubernetes.kubelet.environment import ConfigError, expand

TOKEN_S = 3607
"""The default validity of a token."""


class Volumes:
    """All volumes of one pod."""

    def __init__(self, directory: Path, api: Api, view: ClusterCache) -> None:
        self._directory = directory
        self._api = api
        self._view = view
        self._written: dict[str, projection.Files] = {}
        self._tokens: dict[str, dict[str, str]] = {}
        self._directories: dict[str, Path] = {}

    async def prepare(self, pod: Manifest) -> None:
        """Create all volumes; raises `ConfigError` while something is missing."""
        for volume in pod["spec"].get("volumes", ()):
            name = volume["name"]
            self._directories[name] = self._directory / name
            if "persistentVolumeClaim" in volume:
                self._directories[name] = self._claimed(pod, volume["persistentVolumeClaim"])
                continue
            self._directories[name].mkdir(parents=True, exist_ok=True)
            if "emptyDir" not in volume:
                if name not in self._tokens:
                    self._tokens[name] = await self._request_tokens(pod, volume)
                self._project(pod, volume)

    def refresh(self, pod: Manifest) -> None:
        """Update projected volumes; what was deleted stays as it was."""
        for volume in pod["spec"].get("volumes", ()):
            if volume["name"] in self._written:
                try:
                    self._project(pod, volume)
                except ConfigError:
                    continue

    def source(self, mount: Manifest, variables: Mapping[str, str]) -> Path:
        """The path that a container's mount shows."""
        directory = self._directories[mount["name"]]
        sub_path = mount.get("subPath", "")
        if "subPathExpr" in mount:
            sub_path = expand(mount["subPathExpr"], variables)
        source_path = directory / sub_path
        if not source_path.exists():
            source_path.mkdir(parents=True)
        return source_path.resolve()

    def _project(self, pod: Manifest, volume: Manifest) -> None:
        name = volume["name"]
        if not any(kind in volume for kind in projection.PROJECTED):
            raise ConfigError(f"volume {name} has an unsupported type")
        store = self._view.store(pod["metadata"]["namespace"])
        request = projection.files(volume, pod, store, self._tokens.get(name, {}))
        if self._written.get(name) != request:
            projection.write(self._directories[name], request)
            self._written[name] = request

    def _claimed(self, pod: Manifest, source: Manifest) -> Path:
        namespace, name = pod["metadata"]["namespace"], source["claimName"]
        claim = self._view.claims.get(namespace, name)
        if claim is None:
            raise ConfigError(f'persistentvolumeclaim "{name}" not found')
        volume = self._view.volumes.get("", claim["spec"].get("volumeName", ""))
        if claim.get("status", {}).get("phase") != "Bound" or volume is None:
            raise ConfigError(f'persistentvolumeclaim "{name}" is not bound yet')
        return Path(volume["spec"]["hostPath"]["path"])

    async def _request_tokens(self, pod: Manifest, volume: Manifest) -> dict[str, str]:
        metadata = pod["metadata"]
        account = pod["spec"].get("serviceAccountName", "default")
        path = SERVICE_ACCOUNTS.path(metadata["namespace"], account, "token")
        tokens = {}
        for token in projection.token_requests(volume):
            bound = {"apiVersion": "v1", "kind": "Pod"} | {k: metadata[k] for k in ("name", "uid")}
            spec = {
                "audiences": [token["audience"]] if "audience" in token else [],
                "expirationSeconds": token.get("expirationSeconds", TOKEN_S),
                "boundObjectRef": bound,
            }
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            created = await self._api.create(path, request | {"spec": spec})
            if created is None:
                raise ConfigError(f'serviceaccount "{account}" not found')
            tokens[token["path"]] = created["status"]["token"]
        return tokens
