"""A synchronous client of the API server, for tests.

    kube = KubeClient(url, ca_file, token)
    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", ...})
    kube.wait_for(PODS, "default", "web-0", is_ready)

A missing object is `None`; other errors are an `ApiError`. Each request has its own connection, so
that threads may share a client.
"""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kafscale.operator.kube.api import Kind
from services.waiting import wait_until

Manifest = dict[str, Any]

NAMESPACES = Kind("v1", "Namespace", "namespaces", is_namespaced=False)
DEFINITIONS = Kind(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    is_namespaced=False,
)

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"
FIELD_MANAGER = "tests"
TIMEOUT_S = 30


class ApiError(Exception):
    """An error response of the API server."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class KubeClient:
    """A client with the permissions of a token."""

    def __init__(self, url: str, ca_file: Path, token: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._host = address.hostname
        self._port = address.port or 443
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._kinds: dict[tuple[str, str], Kind] = {}

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        return self._request_or_none("GET", kind.path(namespace, name))

    def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | str = ""
    ) -> list[Manifest]:
        """Objects of one namespace or all, with these labels or a selector."""
        path = kind.path(namespace) + _query(labelSelector=_selector(labels))
        return self.request("GET", path)["items"]

    def create(self, manifest: Manifest, namespace: str = "") -> Manifest:
        kind, namespace, _ = self._locate(manifest, namespace)
        return self.request("POST", kind.path(namespace), manifest)

    def apply(self, manifest: Manifest, namespace: str = "", *, subresource: str = "") -> Manifest:
        """Server-side apply, forced over other field managers."""
        kind, namespace, name = self._locate(manifest, namespace)
        path = kind.path(namespace, name, subresource)
        query = _query(fieldManager=FIELD_MANAGER, force="true", fieldValidation="Strict")
        return self.request("PATCH", path + query, manifest, APPLY_PATCH)

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        """JSON merge patch (RFC 7386)."""
        return self._request_or_none(
            "PATCH", kind.path(namespace, name, subresource), patch, MERGE_PATCH
        )

    def delete(
        self, kind: Kind, namespace: str, name: str, *, grace_s: int | None = None
    ) -> Manifest | None:
        """Delete an object; with a grace of 0, at once."""
        query = "" if grace_s is None else _query(gracePeriodSeconds=str(grace_s))
        return self._request_or_none("DELETE", kind.path(namespace, name) + query)

    def wait_for(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        condition: Callable[[Manifest], object],
        *,
        seconds_max: float = 40,
    ) -> Manifest:
        """The object, as soon as it exists and the condition holds."""
        seen: Manifest | None = None

        def is_met() -> bool:
            nonlocal seen
            seen = self.get(kind, namespace, name)
            return seen is not None and bool(condition(seen))

        wait_until(
            is_met,
            f"{kind.kind} {namespace}/{name} to be as expected",
            seconds_max=seconds_max,
            seen=lambda: json.dumps(seen),
        )
        assert seen is not None
        return seen

    def wait_until_gone(
        self, kind: Kind, namespace: str, name: str, *, seconds_max: float = 40
    ) -> None:
        wait_until(
            lambda: self.get(kind, namespace, name) is None,
            f"{kind.kind} {namespace}/{name} to be gone",
            seconds_max=seconds_max,
            seen=lambda: json.dumps(self.get(kind, namespace, name)),
        )

    def watch(
        self, kind: Kind, namespace: str = "", *, since: str = "", lasts_s: int = 300
    ) -> Iterator[tuple[str, Manifest]]:
        """Events after a version, or of all objects and from now on.

        Yields `ADDED`, `MODIFIED`, `DELETED` or `ERROR` with the object, until the server ends it.
        """
        query = _query(watch="true", resourceVersion=since, timeoutSeconds=str(lasts_s))
        with self._send("GET", kind.path(namespace) + query, seconds_max=lasts_s + 5) as response:
            for line in response:
                event = json.loads(line)
                yield event["type"], event["object"]

    def kind(self, api_version: str, name: str) -> Kind:
        """A kind, as the API server's discovery describes it."""
        if (api_version, name) not in self._kinds:
            known = self.request("GET", Kind(api_version, "", "").path())["resources"]
            for each in known:
                if "/" not in each["name"]:  # Skip subresources.
                    result = Kind(api_version, each["kind"], each["name"], each["namespaced"])
                    self._kinds[api_version, result.kind] = result
        return self._kinds[api_version, name]

    def request(
        self, method: str, path: str, body: Manifest | None = None, content_type: str = JSON
    ) -> Any:
        """Any other request."""
        with self._send(method, path, body, content_type) as response:
            text = response.read()
        return json.loads(text) if response.headers.get_content_type() == JSON else text.decode()

    def _request_or_none(
        self, method: str, path: str, body: Manifest | None = None, content_type: str = JSON
    ) -> Manifest | None:
        try:
            return self.request(method, path, body, content_type)
        except ApiError as error:
            if error.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def _locate(self, manifest: Manifest, namespace: str) -> tuple[Kind, str, str]:
        kind = self.kind(manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        return kind, metadata.get("namespace", namespace), metadata.get("name", "")

    @contextmanager
    def _send(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        content_type: str = JSON,
        *,
        seconds_max: float = TIMEOUT_S,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=seconds_max, context=self._tls
        )
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        try:
            connection.request(method, path, body and json.dumps(body), headers)
            response = connection.getresponse()
            if response.status >= http.HTTPStatus.BAD_REQUEST:
                raise _error(response.status, response.read())
            yield response
        finally:
            connection.close()


def has_condition(manifest: Manifest, type_: str, status: str = "True") -> bool:
    """Whether an object has a condition with this status."""
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == (type_, status) for each in conditions)


def _error(status: int, text: bytes) -> ApiError:
    try:
        body = json.loads(text)
        return ApiError(status, body.get("reason", ""), body.get("message", ""))
    except (ValueError, AttributeError):
        return ApiError(status, "", text.decode(errors="replace"))


def _selector(labels: Mapping[str, str] | str) -> str:
    if isinstance(labels, str):
        return labels
    return ",".join(f"{name}={value}" for name, value in labels.items())


def _query(**parameters: str) -> str:
    present = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(present, quote_via=quote)}" if present else ""
