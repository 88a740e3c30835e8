"""Hostile clients in their own process: a given rate of attempts, of several kinds.

    with hostile_process(ports, hello, KINDS, per_second=300, seconds=10) as clients:
        ...
    clients.attempts()        # The number of attempts by kind.

The kinds are cheap for a client and expensive for a broker; `HostileClients` has a method for each.
The clients connect from an address of their own, because the broker holds the logins of an address
after failures. The process has a low priority, so that the bench measures the limits of the broker
and not the scheduler of a small machine. Attempts that would exceed `OPEN_MAX` at once are skipped.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import uvloop

from kafscale.protocol import header as headers
from kafscale.protocol.api import Api
from kafscale.protocol.frame import LENGTH, frame
from kafscale.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from kafscale.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest

OPEN, SECURE, INSIDE = "OPEN", "SECURE", "INSIDE"
"""Listeners: plaintext, SASL over TLS, SASL without TLS."""
CONNECTIONS = (
    "connect and close",
    "idle",
    "garbage",
    "oversized frame",
    "partial TLS handshake",
    "partial login",
    "wrong password",
)
LONGEST_LISTS = "longest lists"
HOST = "127.0.0.1"
HOSTILE_HOST = "127.0.0.2"
"""The address from which hostile clients connect."""
TICK_S = 0.002
HOLD_S = 2.0
"""How long idle connections stay open."""
NICENESS = 10
OPEN_MAX = 4_000
"""The number of attempts at once: fewer than the files that a process may open."""
LIST_ELEMENTS = 20_000
"""The most names that a broker accepts in one request."""
GARBAGE = (b"\0\0\1\0" + bytes(range(256)), b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64)

Attempt = Callable[[], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HostileClients:
    """Hostile clients of listeners, by name and port."""

    def __init__(self, ports: Mapping[str, int], hello: bytes, kinds: Sequence[str]) -> None:
        """`hello` begins a TLS handshake; `kinds` are names of `attempt_by_kind`."""
        self._ports = ports
        self._hello = hello
        self._random = Random()
        self._kinds = kinds
        self.attempts: Counter[str] = Counter()
        self.attempt_by_kind: dict[str, Attempt] = {
            "connect and close": self.connect_and_close,
            "idle": self.send_nothing,
            "garbage": self.send_garbage,
            "oversized frame": self.announce_oversized_frame,
            "partial TLS handshake": self.partial_handshake,
            "partial login": self.partial_login,
            "wrong password": self.wrong_password,
            LONGEST_LISTS: self.request_longest_list,
        }
        self._longest_lists = [
            _request(DESCRIBE_GROUPS, 5, DescribeGroupsRequest([""] * LIST_ELEMENTS)),
            _request(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=[""] * LIST_ELEMENTS)),
            _request(FIND_COORDINATOR, 4, FindCoordinatorRequest(keys=[""] * LIST_ELEMENTS)),
        ]

    async def run(self, per_second: float, seconds: float) -> None:
        """Start attempts at random times (a Poisson process)."""
        loop = asyncio.get_running_loop()
        in_flight: set[asyncio.Task[None]] = set()
        due = loop.time()
        deadline = due + seconds
        while due < deadline:
            await asyncio.sleep(due - loop.time())
            if len(in_flight) < OPEN_MAX:
                attempt = loop.create_task(self._try(self._random.choice(self._kinds)))
                in_flight.add(attempt)
                attempt.add_done_callback(in_flight.discard)
            # Attempts that are late are skipped, so that the rate stays even.
            due = max(due, loop.time() - TICK_S) + self._random.expovariate(per_second)
        for attempt in in_flight:
            attempt.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)

    async def _try(self, kind: str) -> None:
        with suppress(OSError):
            await self.attempt_by_kind[kind]()

    async def connect_and_close(self) -> None:
        (await self._connect(self._any_listener(), "connect and close"))[1].close()

    async def send_nothing(self) -> None:
        await self._hold((await self._connect(self._any_listener(), "idle"))[1])

    async def send_garbage(self) -> None:
        streams = await self._connect(self._any_listener(), "garbage")
        await self._send_and_read(streams, self._random.choice(GARBAGE))

    async def announce_oversized_frame(self) -> None:
        """Announce a frame that the broker must refuse, and send the first bytes of it."""
        streams = await self._connect(self._random.choice([OPEN, INSIDE]), "oversized frame")
        await self._send_and_read(streams, LENGTH.pack(2**31 - 1) + bytes(64))

    async def partial_handshake(self) -> None:
        _, writer = await self._connect(SECURE, "partial TLS handshake")
        writer.write(self._hello)
        await self._hold(writer)

    async def partial_login(self) -> None:
        _, writer = await self._connect(INSIDE, "partial login")
        writer.write(_request(SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-512")))
        await self._hold(writer)

    async def wrong_password(self) -> None:
        streams = await self._connect(INSIDE, "wrong password")
        token = f"\0alice\0guess-{self._random.random()}".encode()
        guess = _request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token))
        await self._send_and_read(
            streams, _request(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")) + guess
        )

    async def request_longest_list(self) -> None:
        """Send a valid request of an anonymous client without permissions, and close."""
        _, writer = await self._connect(OPEN, LONGEST_LISTS)
        writer.write(self._random.choice(self._longest_lists))
        await self._hold(writer)

    async def _send_and_read(self, streams: Streams, data: bytes) -> None:
        """Send, and wait until the broker closes the connection."""
        reader, writer = streams
        try:
            writer.write(data)
            await reader.read()
        finally:
            writer.close()

    async def _hold(self, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.sleep(HOLD_S)
        finally:
            writer.close()

    def _any_listener(self) -> str:
        return self._random.choice(list(self._ports))

    async def _connect(self, listener: str, kind: str) -> Streams:
        streams = await asyncio.open_connection(
            HOST, self._ports[listener], local_addr=(HOSTILE_HOST, 0)
        )
        self.attempts[kind] += 1
        return streams


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
    ports: Mapping[str, int],
    hello: bytes,
    kinds: Sequence[str],
    *,
    per_second: float,
    seconds: float,
) -> Iterator[HostileProcess]:
    arguments = json.dumps([ports, hello.hex(), kinds, per_second, seconds])
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
    _, files_max = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
    ports, hello, kinds, per_second, seconds = json.loads(sys.argv[1])
    clients = HostileClients(ports, bytes.fromhex(hello), kinds)
    uvloop.run(clients.run(per_second, seconds))
    print(json.dumps(clients.attempts))


if __name__ == "__main__":
    main()
