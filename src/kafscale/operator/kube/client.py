"""The API server over HTTPS: `Kube`, for real.

Who we are and where the server is comes from the pod's ServiceAccount, or outside of a cluster from
the kubeconfig; both are read by Kubernetes' own library, which renews tokens, too.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp
import msgspec
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from kafscale.errors import ConfigError, KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import FIELD_MANAGER, Manifest
from kafscale.operator.kube.kinds import EVENTS, Kind, kind_of

log = get_logger(__name__)

REQUEST_SECONDS_MAX: Final = 30.0
PAGE_SIZE: Final = 500
WATCH_SECONDS: Final = 300
"""After which the server ends a watch, so that one that has gone silent is noticed."""
_ABSENT: Final = 404
_CONFLICT: Final = 409


@asynccontextmanager
async def api_server() -> AsyncIterator["ApiServer"]:
    """The API server of the cluster that this runs in, or of the kubeconfig."""
    configuration = Configuration()
    try:
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        try:
            await load_kube_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise ConfigError(
                f"there is no Kubernetes here: no pod's ServiceAccount, and no kubeconfig ({error})"
            ) from None
    async with ApiClient(configuration) as client:
        yield ApiServer(client)


class ApiServer:
    """What the operator asks of Kubernetes; the promises are with `Kube`."""

    def __init__(self, client: ApiClient, may_write: Callable[[], bool] = lambda: True) -> None:
        self._client = client
        self._may_write = may_write

    def fenced(self, may_write: Callable[[], bool]) -> "ApiServer":
        """The same for somebody who writes only as long as this holds, asked each time."""
        return ApiServer(self._client, may_write)

    async def apply(self, manifest: Manifest) -> Manifest:
        kind, metadata = kind_of(manifest), manifest["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        return await self._apply(path, manifest)

    async def apply_status(self, manifest: Manifest) -> None:
        kind, metadata = kind_of(manifest), manifest["metadata"]
        path = kind.path(metadata["namespace"], metadata["name"], "status")
        try:
            await self._apply(path, manifest)
        except KubeError as error:
            if error.status != _ABSENT:
                raise

    async def _apply(self, path: str, manifest: Manifest) -> Manifest:
        return await self._ask(
            "PATCH",
            path,
            manifest,
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            content_type="application/apply-patch+yaml",
        )

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        return await self._ask_for("GET", kind.path(namespace, name))

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        query = {"limit": str(PAGE_SIZE)}
        if labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in labels.items())
        found: list[Manifest] = []
        while True:
            page = await self._ask("GET", kind.path(namespace), query=query)
            # What is in a list does not say what it is, as the list does.
            found += (
                {"apiVersion": kind.api_version, "kind": kind.kind, **item}
                for item in page["items"]
            )
            more = page["metadata"].get("continue")
            if not more:
                return found
            query["continue"] = more

    async def create(self, manifest: Manifest) -> Manifest | None:
        kind = kind_of(manifest)
        path = kind.path(manifest["metadata"].get("namespace", ""))
        try:
            return await self._ask("POST", path, manifest, query={"fieldManager": FIELD_MANAGER})
        except KubeError as error:
            if error.status != _CONFLICT:
                raise
            return None

    async def replace(self, manifest: Manifest) -> Manifest | None:
        """Write an object as a whole; None if it is not the one any more that was read."""
        kind, metadata = kind_of(manifest), manifest["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        try:
            return await self._ask("PUT", path, manifest, query={"fieldManager": FIELD_MANAGER})
        except KubeError as error:
            if error.status not in {_ABSENT, _CONFLICT}:
                raise
            return None

    async def merge(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        return await self._ask_for(
            "PATCH",
            kind.path(namespace, name, subresource),
            patch,
            query={"fieldManager": FIELD_MANAGER},
            content_type="application/merge-patch+json",
        )

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "") -> bool:
        options: Manifest = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            return await self._ask_for("DELETE", kind.path(namespace, name), options) is not None
        except KubeError as error:
            if error.status != _CONFLICT:
                raise
            return False  # Another object has taken its name.

    async def knows(self, kind: Kind) -> bool:
        root = "/api" if kind.api_version == "v1" else "/apis"
        answer = await self._ask_for("GET", f"{root}/{kind.api_version}")
        return answer is not None and any(
            each["name"] == kind.plural for each in answer["resources"]
        )

    async def tell(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        metadata = about["metadata"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "generateName": f"{metadata['name']}.",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata.get("uid", ""),
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:1024],
            "source": {"component": FIELD_MANAGER},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self.create(event)
        except KubeError as error:
            log.warning("event not left", reason=reason, error=str(error))

    async def watch(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[Manifest]:
        """All objects of a kind that are selected, and each of them again when it changes.

        It ends when the server ends it, or with a `KubeError`; what happens until it is begun again
        is told then, but for deletions.
        """
        query = {"watch": "true", "timeoutSeconds": str(WATCH_SECONDS)}
        if selector:
            query["labelSelector"] = selector
        path = kind.path(namespace)
        limits = aiohttp.ClientTimeout(
            sock_connect=REQUEST_SECONDS_MAX, sock_read=WATCH_SECONDS + REQUEST_SECONDS_MAX
        )
        try:
            async with await self._send("GET", path, query=query, limits=limits) as response:
                if not response.ok:
                    raise _refused("WATCH", path, await response.read(), response)
                async for line in response.content:
                    event: Manifest = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise KubeError(f"the watch of {kind.plural} ended: {event['object']}")
                    yield event["object"]
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise _unanswered("WATCH", path, error) from None

    # --- the wire -----------------------------------------------------------------------------

    async def _ask_for(
        self, method: str, path: str, body: Manifest | None = None, **more: Any
    ) -> Manifest | None:
        """The answer, or None where there is nothing."""
        try:
            return await self._ask(method, path, body, **more)
        except KubeError as error:
            if error.status != _ABSENT:
                raise
            return None

    async def _ask(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        if method != "GET" and not self._may_write():
            raise KubeError(f"{method} {path} was not sent: this operator does not lead any more")
        limits = aiohttp.ClientTimeout(total=REQUEST_SECONDS_MAX)
        try:
            async with await self._send(
                method, path, body, query=query, content_type=content_type, limits=limits
            ) as response:
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unanswered(method, path, error) from None
        if not response.ok:
            raise _refused(method, path, data, response)
        answer: Manifest = msgspec.json.decode(data)
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *,
        query: Mapping[str, str] | None,
        limits: aiohttp.ClientTimeout,
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"])
        session: aiohttp.ClientSession = self._client.rest_client.pool_manager
        return await session.request(
            method,
            f"{self._client.configuration.host}{path}",
            params=query,
            headers=headers,
            data=None if body is None else msgspec.json.encode(body),
            timeout=limits,
        )


def _unanswered(method: str, path: str, error: Exception) -> KubeError:
    reason = str(error) or type(error).__name__
    return KubeError(f"the API server did not answer {method} {path}: {reason}")


def _refused(method: str, path: str, data: bytes, response: aiohttp.ClientResponse) -> KubeError:
    reason = _reason(data, response.reason)
    return KubeError(f"{method} {path} was refused: {reason}", response.status)


def _reason(data: bytes, otherwise: str | None) -> str:
    """What the server says is wrong; it answers with a Status, but proxies before it do not."""
    try:
        return str(msgspec.json.decode(data)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return otherwise or "for no reason given"
