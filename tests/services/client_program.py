"""Clients in other languages, as programs that execute commands.

    with client_program("franz", broker.address) as client:
        client.do("create", topic=topic, partitions=1)

Each program is in `tests/e2e/clients`. It is built on first use, and kept in the user's cache under
a hash of its source.
"""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from services.cache import cached_directory
from services.go_program import ENVIRONMENT, FLAGS

HOME = Path(__file__).parents[1] / "e2e" / "clients"
GO_CLIENTS = ("franz", "sarama", "kafkago")
GO_PROGRAMS = ("transform",)
"""Programs that execute no commands."""
NODE_CLIENTS = ("kafkajs",)
FOREIGN_CLIENTS = (*GO_CLIENTS, *NODE_CLIENTS)
STOP_S_MAX = 10


class ClientError(Exception):
    """The error of a client, with Kafka's error code if the client reports it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class UnsupportedByClientError(ClientError):
    """The client library does not support the command."""


class ClientProgram:
    """A running client that executes commands one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, command: str, **details: Any) -> Any:
        """Execute a command; return its result, or raise its error."""
        self.send(command, **details)
        return self.result()

    def send(self, command: str, **details: Any) -> None:
        """Send a command without waiting for its result."""
        assert self._process.stdin is not None
        print(json.dumps({"command": command} | details), file=self._process.stdin, flush=True)

    def result(self) -> Any:
        """Wait for the response of the command that was sent."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client program exited"
        response = json.loads(line)
        if error := response["error"]:
            kind = UnsupportedByClientError if error["unsupported"] else ClientError
            raise kind(error["message"], error["code"])
        return response["result"]


def missing_for(name: str) -> str | None:
    """The missing program that is needed to build or run this client, if any."""
    needed = ("go",) if name in GO_CLIENTS else ("node", "npm")
    return next((program for program in needed if not shutil.which(program)), None)


@contextmanager
def client_program(
    name: str, address: str, credentials: Mapping[str, str] | None = None
) -> Iterator[ClientProgram]:
    """Run a client of this broker; `credentials` are environment variables."""
    with subprocess.Popen(  # noqa: S603 - the command is our own.
        [*_command(name), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(credentials or {})},
    ) as process:
        try:
            yield ClientProgram(process)
        finally:
            _end(process)


def member_command(name: str) -> list[str | Path]:
    """The command of a client as a group member; append its options as JSON."""
    return [*_command(name), "member"]


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()


def _command(name: str) -> list[str | Path]:
    if name in GO_CLIENTS:
        return [go_clients() / name]
    return ["node", node_clients() / f"{name}.js"]


def go_clients() -> Path:
    """The directory of the clients in Go, built on first use."""
    return cached_directory(f"clients-go-{_fingerprint(HOME / 'go')}", _build_go)


def node_clients() -> Path:
    """The directory of the clients in JavaScript, installed on first use."""
    return cached_directory(f"clients-node-{_fingerprint(HOME / 'node')}", _install_node)


def _fingerprint(source: Path) -> str:
    """A hash of all files below `source`."""
    digest = hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(source)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build_go(directory: Path) -> None:
    programs = [f"./{name}" for name in (*GO_CLIENTS, *GO_PROGRAMS)]
    options = ["-mod=readonly", *FLAGS, "-ldflags=-s -w", "-o", f"{directory}/"]
    subprocess.run(  # noqa: S603 - the arguments are our own.
        ["go", "build", *options, *programs],  # noqa: S607
        cwd=HOME / "go",
        env={**os.environ, **ENVIRONMENT},
        check=True,
    )


def _install_node(directory: Path) -> None:
    for path in (HOME / "node").iterdir():
        if path.is_file():
            shutil.copy(path, directory)
    subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],  # noqa: S607
        cwd=directory,
        check=True,
        stdout=subprocess.DEVNULL,
    )
