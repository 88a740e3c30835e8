"""Clients in other languages, as programs that execute commands.

    with client_program("franz", broker.address) as client:
        client.do("create", topic=topic, partitions=1)

Each program is in `tests/e2e/clients`, built on a machine's first run and kept in the user's cache,
under a name that changes with what it was built from.
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

from services.cache import kept

HOME = Path(__file__).parents[1] / "e2e" / "clients"
GO_CLIENTS = ("franz", "sarama", "kafkago")
NODE_CLIENTS = ("kafkajs",)
FOREIGN_CLIENTS = (*GO_CLIENTS, *NODE_CLIENTS)
STOP_S_MAX = 10


class ClientError(Exception):
    """The error of a client, with Kafka's error code if the client reports it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class UnsupportedByClientError(ClientError):
    """The client has no such thing, whatever the broker has."""


class ClientProgram:
    """A running client that executes commands one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, command: str, **details: Any) -> Any:
        """Have it done; what it brings, or why it failed."""
        self.begin(command, **details)
        return self.result()

    def begin(self, command: str, **details: Any) -> None:
        """Send a command without waiting for its result."""
        assert self._process.stdin is not None
        print(json.dumps({"do": command} | details), file=self._process.stdin, flush=True)

    def result(self) -> Any:
        """Wait for what was begun."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client has ended"
        answer = json.loads(line)
        if error := answer["error"]:
            kind = UnsupportedByClientError if error["unsupported"] else ClientError
            raise kind(error["message"], error["code"])
        return answer["result"]


def missing_for(name: str) -> str | None:
    """The program that is needed to build or run this client, and is not here."""
    needed = ("go",) if name in GO_CLIENTS else ("node", "npm")
    return next((program for program in needed if not shutil.which(program)), None)


@contextmanager
def client_program(
    name: str, address: str, login: Mapping[str, str] | None = None
) -> Iterator[ClientProgram]:
    """A client that knows this broker, and how to log in there, as long as the block lasts."""
    with subprocess.Popen(  # noqa: S603 - the command is our own.
        [*_command(name), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(login or {})},
    ) as process:
        try:
            yield ClientProgram(process)
        finally:
            _end(process)


def member_command(name: str) -> list[str | Path]:
    """The program of a client as a member of a group; its orders come as one more argument."""
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
        return [kept(f"clients-go-{_fingerprint(HOME / 'go')}", _build_go) / name]
    room = kept(f"clients-node-{_fingerprint(HOME / 'node')}", _install_node)
    return ["node", room / f"{name}.js"]


def _fingerprint(source: Path) -> str:
    """The same as long as no file below changes."""
    digest = hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        digest.update(str(path.relative_to(source)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build_go(room: Path) -> None:
    programs = [f"./{name}" for name in GO_CLIENTS]
    subprocess.run(  # noqa: S603 - the arguments are our own.
        ["go", "build", "-mod=readonly", "-ldflags=-s -w", "-o", f"{room}/", *programs],  # noqa: S607
        cwd=HOME / "go",
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
    )


def _install_node(room: Path) -> None:
    for path in (HOME / "node").iterdir():
        if path.is_file():
            shutil.copy(path, room)
    subprocess.run(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],  # noqa: S607
        cwd=room,
        check=True,
        stdout=subprocess.DEVNULL,
    )
