"""The volumes of a pod: directories of the machine, filled with what the pod asks for."""

from collections.abc import Mapping
from pathlib import Path

from kafscale.operator.kube.kinds import SERVICE_ACCOUNTS
from services.kubernetes.kubelet import projection
from services.kubernetes.kubelet.api import Api, Manifest
from services.kubernetes.kubelet.environment import ConfigError, expand
from services.kubernetes.kubelet.view import View

TOKEN_S = 3607
"""How long a token is good if nothing is said."""


class Volumes:
    """All volumes of one pod."""

    def __init__(self, directory: Path, api: Api, view: View) -> None:
        self._directory = directory
        self._api = api
        self._view = view
        self._written: dict[str, projection.Files] = {}
        self._tokens: dict[str, dict[str, str]] = {}
        self._places: dict[str, Path] = {}

    async def prepare(self, pod: Manifest) -> None:
        """Make them all; a `ConfigError` says what is still missing."""
        for volume in pod["spec"].get("volumes", ()):
            name = volume["name"]
            self._places[name] = self._directory / name
            if "persistentVolumeClaim" in volume:
                self._places[name] = self._claimed(pod, volume["persistentVolumeClaim"])
                continue
            self._places[name].mkdir(parents=True, exist_ok=True)
            if "emptyDir" not in volume:
                if name not in self._tokens:
                    self._tokens[name] = await self._request_tokens(pod, volume)
                self._project(pod, volume)

    def refresh(self, pod: Manifest) -> None:
        """Show what has changed since; what is gone stays as it was."""
        for volume in pod["spec"].get("volumes", ()):
            if volume["name"] in self._written:
                try:
                    self._project(pod, volume)
                except ConfigError:
                    continue

    def source(self, mount: Manifest, variables: Mapping[str, str]) -> Path:
        """What a container's mount shows."""
        place = self._places[mount["name"]]
        below = mount.get("subPath", "")
        if "subPathExpr" in mount:
            below = expand(mount["subPathExpr"], variables)
        found = place / below
        if not found.exists():
            found.mkdir(parents=True)
        return found.resolve()

    def _project(self, pod: Manifest, volume: Manifest) -> None:
        name = volume["name"]
        if not any(kind in volume for kind in projection.PROJECTED):
            raise ConfigError(f"volume {name} is of no kind that is known here")
        store = self._view.store(pod["metadata"]["namespace"])
        wanted = projection.files(volume, pod, store, self._tokens.get(name, {}))
        if self._written.get(name) != wanted:
            projection.write(self._places[name], wanted)
            self._written[name] = wanted

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
        for wanted in projection.token_requests(volume):
            bound = {"apiVersion": "v1", "kind": "Pod"} | {k: metadata[k] for k in ("name", "uid")}
            spec = {
                "audiences": [wanted["audience"]] if "audience" in wanted else [],
                "expirationSeconds": wanted.get("expirationSeconds", TOKEN_S),
                "boundObjectRef": bound,
            }
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
            made = await self._api.create(path, request | {"spec": spec})
            if made is None:
                raise ConfigError(f'serviceaccount "{account}" not found')
            tokens[wanted["path"]] = made["status"]["token"]
        return tokens
