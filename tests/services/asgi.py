"""One request to an ASGI application, without a network."""

import asyncio
from collections.abc import Mapping
from typing import Any


def ask(
    app: Any, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers by their names in lower case, and the body."""
    sent: list[dict[str, Any]] = []

    requested = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not requested:
            await asyncio.Event().wait()  # The client stays connected.
        return requested.pop()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    written = {"host": "localhost"} | {name.lower(): text for name, text in (headers or {}).items()}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), text.encode()) for name, text in written.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    asyncio.run(app(scope, receive, send))
    start, *pieces = sent
    headers_received = {name.decode().lower(): text.decode() for name, text in start["headers"]}
    return start["status"], headers_received, b"".join(piece.get("body", b"") for piece in pieces)
