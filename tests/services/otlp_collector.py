"""A trace collector: receives OTLP over HTTP and keeps every span."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from services.waiting import wait_until


@dataclass(frozen=True)
class Span:
    """A span as it was received."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    attributes: dict[str, Any]
    error: str


@dataclass
class Collector:
    """The spans received so far."""

    url: str
    spans: list[Span] = field(default_factory=list)
    requests: int = 0

    def named(self, name: str) -> list[Span]:
        return [span for span in list(self.spans) if span.name == name]

    def wait_for(self, name: str, **attributes: Any) -> Span:
        """Wait for a span with this name and these attributes; return the first."""

        def matching() -> list[Span]:
            return [
                span for span in self.named(name) if attributes.items() <= span.attributes.items()
            ]

        wait_until(
            matching, f"a span {name!r}; there are {sorted({each.name for each in self.spans})}"
        )
        return matching()[0]


@contextmanager
def running() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            assert self.path == "/v1/traces", self.path
            collector.requests += 1
            collector.spans += _spans(ExportTraceServiceRequest.FromString(data))
            response = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in request.resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    service=service,
                    name=span.name,
                    kind=SpanMessage.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    links=tuple(link.span_id.hex() for link in span.links),
                    attributes=_attributes(span.attributes),
                    error=span.status.message,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
