"""Runs servers as processes on free ports."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

READY_S_MAX = 30
STOP_S_MAX = 10


_used: set[int] = set()
"""Ports that were returned before; servers may not listen on them yet."""


def free_port() -> int:
    """A free port outside of the ephemeral range.

    Outgoing connections use ephemeral ports, so that one could be in use before the server listens.
    Each worker of pytest-xdist has its own ports, for the same reason.
    """
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % count
    while True:
        port = SystemRandom().randrange(10_000 + worker, 32_000, count)
        if port in _used:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _used.add(port)
        return port


@contextmanager
def running(
    command: Sequence[str | Path], *, port: int, log: Path, environment: Mapping[str, str]
) -> Iterator[None]:
    """Run a command until the block ends; enter the block when it listens on `port`."""
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the command is a test's own.
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            wait_until_listening(process, port, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until_listening(
    process: subprocess.Popen[bytes],
    port: int,
    log: Path,
    seconds_max: float = READY_S_MAX,
    *,
    host: str = "127.0.0.1",
) -> None:
    """Wait until the process listens; the error has the end of its log."""
    deadline = time.monotonic() + seconds_max
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                output = log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{process.args!r} does not listen: {output}") from None
            time.sleep(0.05)
        else:
            return
