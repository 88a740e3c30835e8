"""A schema registry in a thread: as much of Confluent's REST interface as clients read."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit


class SchemaRegistry:
    """Serves registered schemas, and records requests."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        """The paths, without their queries."""
        self.authorizations: list[str | None] = []
        self.failures: list[int] = []
        """Statuses of the next responses; 0 stands for a regular response."""
        self.redirect_to = ""
        self._responses: dict[str, bytes] = {}

    def register(
        self,
        schema_id: int,
        schema: str,
        *,
        kind: str = "",
        references: Any = (),
        subject: str = "",
        serialized: str = "",
    ) -> None:
        """Register a schema; `serialized` is its serialized form, if that differs."""
        response: dict[str, Any] = {"schema": schema, "id": schema_id}
        if kind:
            response["schemaType"] = kind
        if references:
            response["references"] = list(references)
        paths = [f"/schemas/ids/{schema_id}"]
        if subject:
            paths += [f"/subjects/{subject}/versions/{name}" for name in (schema_id, "latest")]
        for path in paths:
            self.set_response(path, json.dumps(response).encode())
            if serialized:
                content = json.dumps(response | {"schema": serialized}).encode()
                self.set_response(f"{path}?format=serialized", content)

    def set_response(self, path: str, content: bytes) -> None:
        self._responses[path] = content

    def respond(self, path: str, query: str) -> tuple[int, bytes]:
        self.requests.append(path)
        failure = self.failures.pop(0) if self.failures else 0
        if failure:
            return failure, b"{}"
        content = self._responses.get(f"{path}?{query}", self._responses.get(path))
        return (404, b'{"error_code":40403}') if content is None else (200, content)


@contextmanager
def serving() -> Iterator[SchemaRegistry]:
    """Run a registry until the block ends."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.authorizations.append(self.headers.get("Authorization"))
            url = urlsplit(self.path)
            status, content = registry.respond(unquote(url.path), url.query)
            if registry.redirect_to:
                status = 302
            self.send_response(status)
            if registry.redirect_to:
                self.send_header("Location", registry.redirect_to + self.path)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Do not log requests."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
