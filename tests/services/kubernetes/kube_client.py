"""A client of the API server for tests: plain, and whatever it asks for has come when it returns.

    kube = KubeClient(url, authority, token)
    kube.apply({"apiVersion": "v1", "kind": "ConfigMap", ...})
    kube.wait_for(PODS, "default", "web-0", is_ready)

What is not there is `None`; any other refusal is a `KubeRefusalError`. Each request has a
connection of its own, so that threads may share a client.
"""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kafscale.operator.kube.kinds import Kind
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


class KubeRefusalError(Exception):
    """The API server does not do what it is asked."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class KubeClient:
    """Asks one API server, as the one whom the token belongs to."""

    def __init__(self, url: str, authority: Path, token: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self._host = address.hostname
        self._port = address.port or 443
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._kinds: dict[tuple[str, str], Kind] = {}

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        return self._found("GET", kind.path(namespace, name))

    def list(
        self, kind: Kind, namespace: str = "", labels: Mapping[str, str] | str = ""
    ) -> list[Manifest]:
        """Those in one namespace or in all of them, with these labels or what a selector says."""
        path = kind.path(namespace) + _query(labelSelector=_selector(labels))
        return self.request("GET", path)["items"]

    def create(self, manifest: Manifest, namespace: str = "") -> Manifest:
        kind, namespace, _ = self._place(manifest, namespace)
        return self.request("POST", kind.path(namespace), manifest)

    def apply(self, manifest: Manifest, namespace: str = "", *, subresource: str = "") -> Manifest:
        """Make it so, on the server's side, whoever else has set the same fields."""
        kind, namespace, name = self._place(manifest, namespace)
        path = kind.path(namespace, name, subresource)
        query = _query(fieldManager=FIELD_MANAGER, force="true", fieldValidation="Strict")
        return self.request("PATCH", path + query, manifest, APPLY_PATCH)

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Manifest, *, subresource: str = ""
    ) -> Manifest | None:
        """Merge into what is there (RFC 7386)."""
        return self._found("PATCH", kind.path(namespace, name, subresource), patch, MERGE_PATCH)

    def delete(
        self, kind: Kind, namespace: str, name: str, *, grace_s: int | None = None
    ) -> Manifest | None:
        """Have it deleted; with a grace of 0, without waiting for anybody."""
        query = "" if grace_s is None else _query(gracePeriodSeconds=str(grace_s))
        return self._found("DELETE", kind.path(namespace, name) + query)

    def wait_for(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        condition: Callable[[Manifest], object],
        *,
        seconds_max: float = 40,
    ) -> Manifest:
        """The object, as soon as it is there and the condition holds for it."""
        seen: Manifest | None = None

        def is_so() -> bool:
            nonlocal seen
            seen = self.get(kind, namespace, name)
            return seen is not None and bool(condition(seen))

        wait_until(
            is_so,
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
        """What happens after a version, or all there is and what happens from now on.

        That is `ADDED`, `MODIFIED`, `DELETED` or `ERROR`, and the object. It ends by itself.
        """
        query = _query(watch="true", resourceVersion=since, timeoutSeconds=str(lasts_s))
        with self._answer("GET", kind.path(namespace) + query, seconds_max=lasts_s + 5) as answer:
            for line in answer:
                event = json.loads(line)
                yield event["type"], event["object"]

    def kind(self, api_version: str, name: str) -> Kind:
        """How the API server keeps objects of a kind; it says so itself."""
        if (api_version, name) not in self._kinds:
            known = self.request("GET", Kind(api_version, "", "").path())["resources"]
            for each in known:
                if "/" not in each["name"]:  # The others are subresources.
                    found = Kind(api_version, each["kind"], each["name"], each["namespaced"])
                    self._kinds[api_version, found.kind] = found
        return self._kinds[api_version, name]

    def request(
        self, method: str, path: str, body: Manifest | None = None, content_type: str = JSON
    ) -> Any:
        """Whatever there is no method for."""
        with self._answer(method, path, body, content_type) as answer:
            text = answer.read()
        return json.loads(text) if answer.headers.get_content_type() == JSON else text.decode()

    def _found(
        self, method: str, path: str, body: Manifest | None = None, content_type: str = JSON
    ) -> Manifest | None:
        try:
            return self.request(method, path, body, content_type)
        except KubeRefusalError as refusal:
            if refusal.status == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def _place(self, manifest: Manifest, namespace: str) -> tuple[Kind, str, str]:
        kind = self.kind(manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        return kind, metadata.get("namespace", namespace), metadata.get("name", "")

    @contextmanager
    def _answer(
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
            answer = connection.getresponse()
            if answer.status >= http.HTTPStatus.BAD_REQUEST:
                raise _refusal(answer.status, answer.read())
            yield answer
        finally:
            connection.close()


def has_condition(manifest: Manifest, type_: str, status: str = "True") -> bool:
    """Whether an object tells a condition of itself, with this status."""
    told = (manifest.get("status") or {}).get("conditions") or ()
    return any((each["type"], each["status"]) == (type_, status) for each in told)


def _refusal(status: int, text: bytes) -> KubeRefusalError:
    try:
        said = json.loads(text)
        return KubeRefusalError(status, said.get("reason", ""), said.get("message", ""))
    except (ValueError, AttributeError):
        return KubeRefusalError(status, "", text.decode(errors="replace"))


def _selector(labels: Mapping[str, str] | str) -> str:
    if isinstance(labels, str):
        return labels
    return ",".join(f"{name}={value}" for name, value in labels.items())


def _query(**parameters: str) -> str:
    given = {name: value for name, value in parameters.items() if value}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""
