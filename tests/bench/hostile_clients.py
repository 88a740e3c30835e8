"""Hostile clients in their own process: a given rate of attempts, of several kinds.

    with hostile_process(ports, hello, per_second=300, seconds=10) as clients:
        ...
    clients.attempts()        # The number of attempts by kind.

The kinds are cheap for a client and expensive for a broker: connections that close at once,
handshakes that stop after the hello, wrong passwords, frames of garbage, and idle connections. The
process has a low priority, so that the bench measures the limits of the broker and not the
scheduler of a small machine.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import uvloop

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.frame import frame
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest

HOST = "127.0.0.1"
TICK_S = 0.002
HOLD_S = 2.0
"""How long idle connections stay open."""
NICENESS = 10
GARBAGE = (b"\0\0\1\0" + bytes(range(256)), b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64)

Attempt = Callable[[], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HostileClients:
    """Hostile clients of listeners, by name and port."""

    def __init__(self, ports: Mapping[str, int], hello: bytes) -> None:
        self._ports = ports
        self._hello = hello
        self._random = Random()
        self.attempts: Counter[str] = Counter()
        self.kinds: dict[str, Attempt] = {
            "connect and close": self.connect_and_close,
            "partial handshake": self.partial_handshake,
            "wrong password": self.wrong_password,
            "garbage": self.send_garbage,
            "idle": self.send_nothing,
        }

    async def run(self, per_second: float, seconds: float) -> None:
        """Start attempts at random times (a Poisson process)."""
        loop = asyncio.get_running_loop()
        in_flight: set[asyncio.Task[None]] = set()
        due = loop.time()
        deadline = due + seconds
        while due < deadline:
            await asyncio.sleep(due - loop.time())
            attempt = loop.create_task(self._try(self._random.choice(list(self.kinds))))
            in_flight.add(attempt)
            attempt.add_done_callback(in_flight.discard)
            # Attempts that are late are skipped, so that the rate stays even.
            due = max(due, loop.time() - TICK_S) + self._random.expovariate(per_second)
        for attempt in in_flight:
            attempt.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)

    async def _try(self, kind: str) -> None:
        self.attempts[kind] += 1
        with suppress(OSError):
            await self.kinds[kind]()

    async def connect_and_close(self) -> None:
        (await self._connect(self._random.choice(list(self._ports))))[1].close()

    async def partial_handshake(self) -> None:
        _, writer = await self._connect("SECURE")
        writer.write(self._hello)
        await self._hold(writer)

    async def wrong_password(self) -> None:
        reader, writer = await self._connect("INSIDE")
        writer.write(_request(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")))
        token = f"\0admin\0guess-{self._random.random()}".encode()
        writer.write(_request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)))
        await reader.read()  # Until the broker closes the connection.
        writer.close()

    async def send_garbage(self) -> None:
        reader, writer = await self._connect(self._random.choice(list(self._ports)))
        writer.write(self._random.choice(GARBAGE))
        await reader.read()
        writer.close()

    async def send_nothing(self) -> None:
        _, writer = await self._connect(self._random.choice(list(self._ports)))
        await self._hold(writer)

    async def _hold(self, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.sleep(HOLD_S)
        finally:
            writer.close()

    async def _connect(self, listener: str) -> Streams:
        return await asyncio.open_connection(HOST, self._ports[listener])


class HostileProcess:
    """A process of hostile clients, as the bench controls it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def attempts(self) -> dict[str, int]:
        """Wait for the end; return the number of attempts by kind."""
        output, _ = self._process.communicate(timeout=60)
        assert self._process.returncode == 0
        return dict(json.loads(output))


@contextmanager
def hostile_process(
    ports: Mapping[str, int], hello: bytes, *, per_second: float, seconds: float
) -> Iterator[HostileProcess]:
    arguments = json.dumps([ports, hello.hex(), per_second, seconds])
    process = subprocess.Popen(  # noqa: S603 - the command is our own.
        [sys.executable, "-m", "bench.hostile_clients", arguments],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield HostileProcess(process)
    finally:
        process.kill()
        process.wait()


def _request(api: Api[object, object], version: int, message: object) -> bytes:
    header = headers.RequestHeader(api.key, version, 1, "hostile")
    written = headers.encode_request_header(header, api.request_header_version(version))
    return b"".join(frame(written, api.request_codec(version).encode(message)))


def main() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    ports, hello, per_second, seconds = json.loads(sys.argv[1])
    clients = HostileClients(ports, bytes.fromhex(hello))
    uvloop.run(clients.run(per_second, seconds))
    print(json.dumps(clients.attempts))


if __name__ == "__main__":
    main()
