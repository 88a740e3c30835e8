"""`kafscale` commands as processes that fork from one that has imported their code already.

    process = fork_server.start(["broker"], environment=environment, output=log)
    process.terminate()
    assert process.wait(10) == 0

To import the code of a broker takes a second of CPU time, to fork takes none, and the tests start
hundreds of brokers and consoles. The process that forks (`python -m services.fork_server`) imports
`PRELOADED` once and runs nothing else, so a command finds what a new interpreter would have.
Measurements need interpreters of their own: `with fork_server.disabled(): ...`.

It forks twice: a waiting process, which reports the command's process ID and exit status through
a pipe, and from that the command itself.
"""

import atexit
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import BinaryIO, NoReturn

PRELOADED = (
    "grpc.aio",
    "kafscale.broker.app",
    "kafscale.cli.main",
    "kafscale.console.server",
    "pydantic.type_adapter",
    "uvloop",
)
REQUEST_BYTES_MAX = 256 * 1024
NUMBER = struct.Struct("i")

_is_enabled = True


class ForkedCommand:
    """A running command, with those methods of `subprocess.Popen` that the tests need."""

    def __init__(self, arguments: Sequence[str], pipe: int) -> None:
        self.args = arguments
        self.returncode: int | None = None
        self._pipe = pipe
        self._lock = threading.Lock()
        self.pid = _read_number(pipe)

    def poll(self) -> int | None:
        """The exit code, or the negative number of the signal, once the command has ended."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._wait(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait(self, timeout: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._pipe], [], [], timeout)[0]:
                self.returncode = os.waitstatus_to_exitcode(_read_number(self._pipe))
                os.close(self._pipe)
            return self.returncode


@contextmanager
def disabled() -> Iterator[None]:
    """Start new interpreters while the block runs."""
    global _is_enabled  # noqa: PLW0603 - there is one server for the whole process.
    _is_enabled = False
    try:
        yield
    finally:
        _is_enabled = True


Process = ForkedCommand | subprocess.Popen[bytes]


def start(arguments: Sequence[str], *, environment: Mapping[str, str], output: Path) -> Process:
    """Start `kafscale` with these arguments; what it prints is appended to `output`."""
    with output.open("ab") as file:
        if _is_enabled:
            return _fork(arguments, environment, file)
        return subprocess.Popen(  # noqa: S603 - the command is our own.
            [Path(sys.executable).with_name("kafscale"), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def _fork(
    arguments: Sequence[str], environment: Mapping[str, str], output: BinaryIO
) -> ForkedCommand:
    request = json.dumps([[*arguments], dict(environment), str(Path.cwd())]).encode()
    reader, writer = os.pipe()
    try:
        socket.send_fds(_connection(), [request], [output.fileno(), writer])
    finally:
        os.close(writer)
    return ForkedCommand(arguments, reader)


def _python_path() -> str:
    """Tests first, and what the environment names, such as the sources of another checkout."""
    tests, inherited = str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")
    return os.pathsep.join([tests, inherited] if inherited else [tests])


@cache
def _connection() -> socket.socket:
    """Start the server of this process, and return the connection to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES_MAX)
        server = subprocess.Popen(  # noqa: S603 - the command is our own.
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            env=os.environ | {"PYTHONPATH": _python_path()},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    atexit.register(server.wait)
    atexit.register(ours.close)  # The server ends with the connection.
    return ours


def serve(connection: socket.socket) -> None:
    """Fork a command for every request, until the connection is closed."""
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # The system then removes ended processes.
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES_MAX, 2)
        if not request:
            return
        if os.fork() == 0:
            connection.close()
            _fork_command(request, *descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_command(request: bytes, output: int, pipe: int) -> None:
    """Fork and run the command, and report how it ends; called in the waiting process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if (pid := os.fork()) == 0:
        os.close(pipe)
        _run(output, *json.loads(request))
        return
    os.close(output)
    os.write(pipe, NUMBER.pack(pid))
    _, status = os.waitpid(pid, 0)
    os.write(pipe, NUMBER.pack(status))


def _run(
    output: int, arguments: list[str], environment: dict[str, str], directory: str
) -> NoReturn:
    """Run the command as if this interpreter had been started for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    os.close(output)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["kafscale", *arguments]
    sys.exit(importlib.import_module("kafscale.cli.main").main())


def _read_number(pipe: int) -> int:
    return int(NUMBER.unpack(os.read(pipe, NUMBER.size))[0])


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
