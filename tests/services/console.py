"""A console process, and an HTTP client of its API.

    with BrokerProcess(tmp_path) as broker, ConsoleProcess(tmp_path, broker) as console:
        client = console.client()
        topics = client.get("/topics")
        client.post("/topics", {"name": "orders"})

The console stops when the block ends. Its log is in the directory, and is part of the error message
if it does not start.
"""

import http.client
import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from services import fork_server
from services.broker import HOST, START_S_MAX, STOP_S_MAX, BrokerProcess
from services.process import free_port

USERNAME = "admin"
PASSWORD = "correct horse battery staple"  # noqa: S105 - opens nothing but tests.
API = "/api/v1"
LISTENING = "console listening on "


class ConsoleProcess:
    """A console process, for one broker or for the cluster that the settings name."""

    def __init__(
        self, directory: Path, broker: BrokerProcess | None = None, **settings: str
    ) -> None:
        """`settings` are environment variables without their prefix: `ui_password=""`."""
        self.directory = directory
        self.log = directory / "console.log"
        self.port = free_port()
        self.settings = settings
        self._broker = broker
        self._process: fork_server.Process | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.terminate()

    def start(self) -> Self:
        """Start, and wait until it listens."""
        assert self._process is None, "the console is running already"
        self.directory.mkdir(parents=True, exist_ok=True)
        logged_bytes = self.log.stat().st_size if self.log.exists() else 0
        self._process = fork_server.start(
            ["console"], environment=self._environment(), output=self.log
        )
        deadline = time.monotonic() + START_S_MAX
        while LISTENING not in self.logged(logged_bytes):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the console did not start: {self.logged(logged_bytes)}")
            time.sleep(0.02)
        return self

    def terminate(self) -> None:
        """Stop it with SIGTERM, and check that it exits with 0."""
        assert self._process is not None, "the console is not running"
        process, self._process = self._process, None
        process.terminate()
        try:
            code = process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert code == 0, f"the console exited with {code}: {self.logged()[-4000:]}"

    def logged(self, since_bytes: int = 0) -> str:
        with self.log.open("rb") as log:
            log.seek(since_bytes)
            return log.read().decode(errors="replace")

    def anonymous_client(self, **options: Any) -> "ConsoleClient":
        """A client that is not signed in."""
        return ConsoleClient(self.port, **options)

    def client(self) -> "ConsoleClient":
        """A client that is signed in."""
        client = self.anonymous_client()
        client.sign_in()
        return client

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def _environment(self) -> dict[str, str]:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("KAFSCALE_")
        }
        own = {
            "ui_host": HOST,
            "ui_port": str(self.port),
            "ui_username": USERNAME,
            "ui_password": PASSWORD,
            "ui_refresh_interval_ms": "500",
        }
        if self._broker is not None:
            own |= self._broker.settings | {
                "data_dir": str(self._broker.data),
                "bootstrap_servers": self._broker.address,
                "control_servers": self._broker.control_address,
            }
        settings = {
            f"KAFSCALE_{name.upper()}": text for name, text in (own | self.settings).items()
        }
        return inherited | settings


@dataclass
class ConsoleResponse:
    """A response of the console."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ProblemError(AssertionError):
    """An error response where a success was expected."""

    def __init__(self, response: ConsoleResponse) -> None:
        super().__init__(f"{response.status}: {response.body.decode(errors='replace')[:2000]}")
        self.response = response


@dataclass
class ConsoleClient:
    """An HTTP client that keeps the session cookie and sends the CSRF token."""

    port: int
    context: ssl.SSLContext | None = None
    cookies: dict[str, str] = field(default_factory=dict)
    csrf_token: str | None = None

    def sign_in(self, username: str = USERNAME, password: str = PASSWORD) -> ConsoleResponse:
        response = self.request("POST", "/session", {"username": username, "password": password})
        if response.status == 200:
            self.csrf_token = response.json["csrfToken"]
        return response

    def get(self, path: str, **query: Any) -> Any:
        return self._expect_success("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, body: Any = None) -> Any:
        return self._expect_success("POST", path, body)

    def put(self, path: str, body: Any = None) -> Any:
        return self._expect_success("PUT", path, body)

    def delete(self, path: str, body: Any = None) -> Any:
        return self._expect_success("DELETE", path, body)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> ConsoleResponse:
        """Send a request to the API, and return the response with any status."""
        return self.request_path(method, API + path, body, headers)

    def request_path(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> ConsoleResponse:
        with self._send(method, path, body, headers) as received:
            response = ConsoleResponse(received.status, received.headers, received.read())
        for header in response.headers.get_all("Set-Cookie") or ():
            for name, morsel in SimpleCookie(header).items():
                self.cookies[name] = morsel.value
        return response

    @contextmanager
    def events(self, path: str = "/events") -> Iterator[Iterator[tuple[str, Any]]]:
        """Receive server-sent events: their names, and their data decoded as JSON."""
        with self._send("GET", API + path, None, None) as response:
            assert response.status == 200, response.read()
            yield _events(response)

    def _expect_success(self, method: str, path: str, body: Any = None) -> Any:
        response = self.request(method, path, body)
        if response.status not in {200, 204}:
            raise ProblemError(response)
        return response.json if response.body else None

    @contextmanager
    def _send(
        self, method: str, path: str, body: Any, headers: dict[str, str] | None
    ) -> Iterator[http.client.HTTPResponse]:
        all_headers = {"Cookie": "; ".join(f"{name}={text}" for name, text in self.cookies.items())}
        if self.csrf_token and method != "GET":
            all_headers["X-CSRF-Token"] = self.csrf_token
        if body is not None:
            all_headers["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connection()
        try:
            connection.request(method, path, body, all_headers | (headers or {}))
            response = connection.getresponse()
            yield response
            response.close()
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self.context is None:
            return http.client.HTTPConnection(HOST, self.port, timeout=60)
        return http.client.HTTPSConnection(HOST, self.port, timeout=60, context=self.context)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name, data = "message", []
    for line in response:
        label, _, text = line.decode().rstrip("\r\n").partition(":")
        if label == "event":
            name = text.strip()
        elif label == "data":
            data.append(text.removeprefix(" "))
        elif not label and data:
            yield name, json.loads("\n".join(data))
            name, data = "message", []
