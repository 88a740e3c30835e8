"""A metrics server for autoscalers, whose values are set by tests.

    with MetricsApi(plane) as metrics:
        metrics.set_value(namespace, "cpu", "900m")
        metrics.set_value(namespace, "kafscale_produce_requests_per_second", "1500")

It serves `metrics.k8s.io` (cpu and memory) and `custom.metrics.k8s.io` (other metrics of pods)
behind the API server. It lists pods at the API server, so that new ones have values too.
"""

import base64
import datetime as dt
import json
import ssl
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from kafscale.operator.kube.api import PODS, SERVICES, Kind
from services.kubernetes.control_plane import ControlPlane
from services.kubernetes.kube_client import Manifest, has_condition
from services.kubernetes.namespaces import GATEWAY

API_SERVICES = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", is_namespaced=False)

RESOURCES = "metrics.k8s.io/v1beta1"
CUSTOM = "custom.metrics.k8s.io/v1beta2"
WINDOW = "30s"

_NAMESPACE = "kube-system"
_NAME = "made-up-metrics"
_RESOURCE_NAMES = ("cpu", "memory")


class MetricsApi:
    """Metrics of pods, registered at the API server until the block ends."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._values_by_metric: dict[tuple[str, str], str] = {}
        self._server = ThreadingHTTPServer((GATEWAY, 0), self._handler())
        files = plane.credentials.issue(_NAME, [f"{_NAME}.{_NAMESPACE}.svc"])
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*files)
        # The handshake runs in the thread of the request, not in the accepting one.
        self._server.socket = tls.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        for manifest in self._manifests():
            self._plane.kube.apply(manifest)
        for version in (RESOURCES, CUSTOM):
            self._plane.kube.wait_for(
                API_SERVICES,
                "",
                _service_name(version),
                lambda service: has_condition(service, "Available"),
            )
        return self

    def __exit__(self, *_: object) -> None:
        # While an API service is unavailable, no namespace can be deleted.
        for version in (RESOURCES, CUSTOM):
            self._plane.kube.delete(API_SERVICES, "", _service_name(version))
        self._plane.kube.delete(SERVICES, _NAMESPACE, _NAME)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def set_value(self, namespace: str, metric: str, value: str) -> None:
        """Set a metric of each pod."""
        self._values_by_metric[namespace, metric] = value

    def clear(self, namespace: str) -> None:
        """Drop all metrics of these pods."""
        for key in [key for key in self._values_by_metric if key[0] == namespace]:
            del self._values_by_metric[key]

    def respond(self, url: str) -> Manifest | None:
        """The response for a URL; `*` means all pods that the selector matches."""
        selector = "".join(parse_qs(urlsplit(url).query).get("labelSelector", []))
        match unquote(urlsplit(url).path).strip("/").split("/"):
            case ["apis", group, version] if f"{group}/{version}" in (RESOURCES, CUSTOM):
                return _resources(f"{group}/{version}")
            case ["apis", "metrics.k8s.io", "v1beta1", "namespaces", namespace, "pods"]:
                items = list(self._pod_metrics(namespace, selector))
                return {"apiVersion": RESOURCES, "kind": "PodMetricsList", "items": items}
            case [
                "apis",
                "custom.metrics.k8s.io",
                "v1beta2",
                "namespaces",
                namespace,
                "pods",
                "*",
                metric,
            ]:
                items = list(self._values(namespace, selector, metric))
                return {"apiVersion": CUSTOM, "kind": "MetricValueList", "items": items}
            case _:
                return None

    def _pod_metrics(self, namespace: str, selector: str) -> Iterator[Manifest]:
        for pod in self._plane.kube.list(PODS, namespace, selector):
            name = pod["metadata"]["name"]
            values = {
                each: self._values_by_metric.get((namespace, each)) for each in _RESOURCE_NAMES
            }
            usage = {each: value for each, value in values.items() if value is not None}
            if usage:
                yield {
                    "metadata": {"name": name, "namespace": namespace},
                    "timestamp": _now(),
                    "window": WINDOW,
                    "containers": [{"name": pod["spec"]["containers"][0]["name"], "usage": usage}],
                }

    def _values(self, namespace: str, selector: str, metric: str) -> Iterator[Manifest]:
        for pod in self._plane.kube.list(PODS, namespace, selector):
            name = pod["metadata"]["name"]
            value = self._values_by_metric.get((namespace, metric))
            if value is not None:
                pod_reference = {"apiVersion": "v1", "kind": "Pod", "namespace": namespace}
                yield {
                    "describedObject": pod_reference | {"name": name},
                    "metric": {"name": metric},
                    "timestamp": _now(),
                    "value": value,
                }

    def _manifests(self) -> Iterator[Manifest]:
        """A Service that leads here, and the two API services."""
        metadata = {"name": _NAME, "namespace": _NAMESPACE}
        host, port = self._server.server_address[:2]
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"port": 443, "targetPort": port}]},
        }
        yield {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": metadata,
            "subsets": [{"addresses": [{"ip": host}], "ports": [{"port": port}]}],
        }
        for api_version in (RESOURCES, CUSTOM):
            group, _, version = api_version.partition("/")
            yield {
                "apiVersion": API_SERVICES.api_version,
                "kind": API_SERVICES.kind,
                "metadata": {"name": _service_name(api_version)},
                "spec": {
                    "group": group,
                    "version": version,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                    "service": metadata,
                    "caBundle": base64.b64encode(self._plane.ca_file.read_bytes()).decode(),
                },
            }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        respond = self.respond

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                values = respond(self.path)
                self.send_response(HTTPStatus.NOT_FOUND if values is None else HTTPStatus.OK)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(values).encode())

            def log_message(self, *_: object) -> None:
                """No access log."""

        return Handler


def _resources(version: str) -> Manifest:
    """The discovery document of an API group."""
    pods = {"name": "pods", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": [pods] if version == RESOURCES else [],
    }


def _service_name(version: str) -> str:
    group, _, version = version.partition("/")
    return f"{version}.{group}"


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
