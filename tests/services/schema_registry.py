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
        """Statuses to answer with before anything else, each once; 0 is for a true answer."""
        self.redirect_to = ""
        self._answers: dict[str, bytes] = {}

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
        """Tell it a schema, and what it says if asked for the serialized form, if that differs."""
        answer: dict[str, Any] = {"schema": schema, "id": schema_id}
        if kind:
            answer["schemaType"] = kind
        if references:
            answer["references"] = list(references)
        paths = [f"/schemas/ids/{schema_id}"]
        if subject:
            paths += [f"/subjects/{subject}/versions/{name}" for name in (schema_id, "latest")]
        for path in paths:
            self.answer(path, json.dumps(answer).encode())
            if serialized:
                content = json.dumps(answer | {"schema": serialized}).encode()
                self.answer(f"{path}?format=serialized", content)

    def answer(self, path: str, content: bytes) -> None:
        self._answers[path] = content

    def respond(self, path: str, query: str) -> tuple[int, bytes]:
        self.requests.append(path)
        failure = self.failures.pop(0) if self.failures else 0
        if failure:
            return failure, b"{}"
        content = self._answers.get(f"{path}?{query}", self._answers.get(path))
        return (404, b'{"error_code":40403}') if content is None else (200, content)


@contextmanager
def serving() -> Iterator[SchemaRegistry]:
    """A registry that answers until the block ends."""
    registry = SchemaRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.authorizations.append(self.headers.get("Authorization"))
            asked = urlsplit(self.path)
            status, content = registry.respond(unquote(asked.path), asked.query)
            if registry.redirect_to:
                status = 302
            self.send_response(status)
            if registry.redirect_to:
                self.send_header("Location", registry.redirect_to + self.path)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        registry.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
