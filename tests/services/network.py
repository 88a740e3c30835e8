"""The links between the servers of a test, and their faults.

    with Network(tmp_path, seed=1) as network:
        port = network.link("broker-1 to s3", s3_port, "http")
        network.set("broker-1 to s3", Fault(error_share=0.3))
        network.heal()

All links run in one separate process, so that other work does not slow them down.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal, Self

import msgspec

from services.link_fault import HEALTHY, Fault, LinkCounts
from services.network_process import Command, GetCounts, Open, ResetConnections, Response, SetFault
from services.process import STOP_S_MAX

TESTS = Path(__file__).parents[1]


class Network:
    """Links by name; any thread may use it."""

    def __init__(self, directory: Path, *, seed: int) -> None:
        self._log = directory / "network.log"
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None
        self._names: list[str] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the command is our own.
                [sys.executable, "-m", "services.network_process", str(self._seed)],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        try:
            self._process.communicate(timeout=STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def link(self, name: str, upstream_port: int, kind: Literal["tcp", "http"]) -> int:
        """Open a link to `upstream_port`; return its port."""
        assert name not in self._names
        self._names.append(name)
        return self._send_command(Open(name, upstream_port, kind)).port

    def set(self, name: str, fault: Fault) -> None:
        """Set the fault of a link, until it is changed."""
        self._send_command(SetFault(name, fault))

    def heal(self) -> None:
        for name in self._names:
            self.set(name, HEALTHY)

    def reset_connections(self, name: str) -> None:
        """Reset the open connections of a link; new ones are accepted."""
        self._send_command(ResetConnections(name))

    def counts(self, name: str) -> LinkCounts:
        return self._send_command(GetCounts(name)).counts

    def _send_command(self, command: Command) -> Response:
        process = self._process
        assert process is not None, "the network is not running"
        assert process.stdin is not None
        assert process.stdout is not None
        with self._lock:
            process.stdin.write(msgspec.json.encode(command) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        assert line, f"the network process exited: {self._log.read_text()[-2000:]}"
        return msgspec.json.decode(line, type=Response)
