"""The Kubernetes API over HTTPS: the implementation of `Kube`.

The address and credentials of the API server come from the pod's ServiceAccount or, outside of a
cluster, from the kubeconfig. Kubernetes' own client library reads both and renews tokens.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import msgspec
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from kafscale.aio.clock import clock
from kafscale.errors import ConfigError, KubeError
from kafscale.observability.logging import get_logger
from kafscale.operator.kube.api import EVENTS, FIELD_MANAGER, Kind, Manifest, kind_of
from kafscale.text.formatting import format_time

logger = get_logger(__name__)

REQUEST_SECONDS_MAX: Final = 30.0
PAGE_SIZE: Final = 500
WATCH_SECONDS: Final = 300
"""The server ends a watch after this time, so that a dead connection is noticed."""
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


@asynccontextmanager
async def api_server() -> AsyncIterator["ApiServer"]:
    """The API server of the cluster that this process runs in, or that of the kubeconfig."""
    configuration = Configuration()
    try:
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        try:
            await load_kube_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            raise ConfigError(
                "no access to Kubernetes: neither a pod's ServiceAccount nor a kubeconfig was found"
                f" ({error})"
            ) from None
    async with ApiClient(configuration) as client:
        yield ApiServer(client)


class ApiServer:
    """A client of the API server; `Kube` documents the guarantees."""

    def __init__(self, client: ApiClient, may_write: Callable[[], bool] = lambda: True) -> None:
        self._client = client
        self._may_write = may_write

    def fenced(self, may_write: Callable[[], bool]) -> "ApiServer":
        """A client that writes only while `may_write()` is true; it is called before each write."""
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
            if error.status != _NOT_FOUND:
                raise

    async def _apply(self, path: str, manifest: Manifest) -> Manifest:
        return await self._request(
            "PATCH",
            path,
            manifest,
            query={"fieldManager": FIELD_MANAGER, "force": "true"},
            content_type="application/apply-patch+yaml",
        )

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        return await self._request_or_none("GET", kind.path(namespace, name))

    async def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        query = {"limit": str(PAGE_SIZE)}
        if labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in labels.items())
        items: list[Manifest] = []
        while True:
            page = await self._request("GET", kind.path(namespace), query=query)
            # Items of a list carry neither apiVersion nor kind.
            items += (
                {"apiVersion": kind.api_version, "kind": kind.kind, **item}
                for item in page["items"]
            )
            more = page["metadata"].get("continue")
            if not more:
                return items
            query["continue"] = more

    async def create(self, manifest: Manifest) -> Manifest | None:
        kind = kind_of(manifest)
        path = kind.path(manifest["metadata"].get("namespace", ""))
        try:
            return await self._request(
                "POST", path, manifest, query={"fieldManager": FIELD_MANAGER}
            )
        except KubeError as error:
            if error.status != _CONFLICT:
                raise
            return None

    async def replace(self, manifest: Manifest) -> Manifest | None:
        """Replace an object; None if it was deleted or changed since it was read."""
        kind, metadata = kind_of(manifest), manifest["metadata"]
        path = kind.path(metadata.get("namespace", ""), metadata["name"])
        try:
            return await self._request("PUT", path, manifest, query={"fieldManager": FIELD_MANAGER})
        except KubeError as error:
            if error.status not in {_NOT_FOUND, _CONFLICT}:
                raise
            return None

    async def merge_patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        return await self._request_or_none(
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
            return (
                await self._request_or_none("DELETE", kind.path(namespace, name), options)
                is not None
            )
        except KubeError as error:
            if error.status != _CONFLICT:
                raise
            return False  # Another object has taken its name.

    async def supports(self, kind: Kind) -> bool:
        root = "/api" if kind.api_version == "v1" else "/apis"
        response = await self._request_or_none("GET", f"{root}/{kind.api_version}")
        return response is not None and any(
            each["name"] == kind.plural for each in response["resources"]
        )

    async def record_event(
        self, about: Manifest, reason: str, message: str, *, warning: bool = False
    ) -> None:
        metadata = about["metadata"]
        now = format_time(clock(), "seconds")
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
            logger.warning("event not recorded", reason=reason, error=str(error))

    async def watch(
        self, kind: Kind, namespace: str = "", selector: str = ""
    ) -> AsyncIterator[Manifest]:
        """Yield all selected objects of a kind, and each of them again when it changes.

        Ends when the server ends the watch, or raises `KubeError`. A new watch yields all objects
        again, but no deletions that happened in between.
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
                    raise _error_response("WATCH", path, await response.read(), response)
                async for line in response.content:
                    event: Manifest = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise KubeError(f"the watch of {kind.plural} ended: {event['object']}")
                    yield event["object"]
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise _connection_error("WATCH", path, error) from None

    # --- HTTP ---------------------------------------------------------------------------------

    async def _request_or_none(
        self, method: str, path: str, body: Manifest | None = None, **more: Any
    ) -> Manifest | None:
        """The response, or None for 404."""
        try:
            return await self._request(method, path, body, **more)
        except KubeError as error:
            if error.status != _NOT_FOUND:
                raise
            return None

    async def _request(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        if method != "GET" and not self._may_write():
            raise KubeError(f"{method} {path} was not sent: this operator is no longer the leader")
        limits = aiohttp.ClientTimeout(total=REQUEST_SECONDS_MAX)
        try:
            async with await self._send(
                method, path, body, query=query, content_type=content_type, limits=limits
            ) as response:
                data = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _connection_error(method, path, error) from None
        if not response.ok:
            raise _error_response(method, path, data, response)
        decoded: Manifest = msgspec.json.decode(data)
        return decoded

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


def _connection_error(method: str, path: str, error: Exception) -> KubeError:
    reason = str(error) or type(error).__name__
    return KubeError(f"no response from the API server to {method} {path}: {reason}")


def _error_response(
    method: str, path: str, data: bytes, response: aiohttp.ClientResponse
) -> KubeError:
    reason = _reason(data, response.reason)
    return KubeError(f"{method} {path} failed: {reason}", response.status)


def _reason(data: bytes, default: str | None) -> str:
    """The message of a Kubernetes Status; proxies in between may send something else."""
    try:
        return str(msgspec.json.decode(data)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return default or "no reason given"
