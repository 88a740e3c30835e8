"""A broker among strangers who mean harm, and the checks that they do none.

    with Siege(directory) as siege, siege.unharmed():
        ...whatever it takes...

The laws that `unharmed` checks: the broker lives; honest clients are served on every listener as if
nothing were; memory returns to about what it was; the log holds no traceback, no error, and nothing
that is secret; nobody is left at the door.
"""

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from services.broker import HOST
from services.login_wire import LoginWire
from services.secured_broker import ADMIN, MECHANISMS, SecuredBroker, password_of
from services.waiting import wait_until
from services.way_in import WayIn
from services.wire import batch_of

GROWTH_BYTES_MAX = 48 << 20
"""Allocators keep some of what they had; a leak of a kilobyte each is found by many."""
TIMEOUT_S = 1.0
"""How long strangers have for their first request, and to log in."""
FRAME_S = 2.0
"""How long a frame may take."""
OPEN, MUTUAL, SECURE, INSIDE = "OPEN", "MUTUAL", "SECURE", "INSIDE"
PLAINTEXT_LISTENERS = (OPEN, INSIDE)
TLS_LISTENERS = (MUTUAL, SECURE)

_TROUBLE = re.compile(r"Traceback|\"level\": \"(error|critical)\"|^(?!\{)")
"""What a line must not hold; lines that are not ours are not JSON."""
_ACTIVE = re.compile(r"^kafscale_active_connections (\S+)$", re.MULTILINE)


class Siege:
    """One broker with all kinds of listeners, which strangers may use up to a point."""

    def __init__(self, directory: Path, **settings: str) -> None:
        besieged = {
            "sasl_enabled_mechanisms": ",".join(MECHANISMS),
            "network_connection_timeout": f"{TIMEOUT_S * 1000:.0f}ms",
            "network_request_timeout": f"{FRAME_S * 1000:.0f}ms",
            "sasl_failed_delay_ms": "10",
        }
        self.broker = SecuredBroker(directory, users=("alice",), **(besieged | settings))
        self.secrets = {password_of(ADMIN), password_of("alice")}
        """What no log may hold; those who say more that is secret add it."""

    def __enter__(self) -> Self:
        self.broker.start()
        self._check_honest()  # What comes first takes memory that stays.
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.terminate()

    def port(self, listener: str) -> int:
        return self.broker.ports[listener]

    def stranger(self, listener: str = INSIDE, *, timeout_s: float = 10) -> LoginWire:
        """Somebody who has only connected."""
        return LoginWire(self.port(listener), timeout_s=timeout_s)

    def call(self, listener: str) -> socket.socket:
        """The same, without any wire."""
        return socket.create_connection((HOST, self.port(listener)), timeout=10)

    def hello(self) -> bytes:
        """What a client of TLS says first."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = self.broker.plain(ADMIN).tls()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()

    def admin(self, listener: str = INSIDE) -> LoginWire:
        """Somebody who may do everything."""
        way = self._way(listener)
        wire = LoginWire(way.port, tls=way.tls() if way.authority else None)
        if way.mechanism:
            wire.log_in(way.user, way.password)
        return wire

    def memory_bytes(self) -> int:
        """How much memory the broker has."""
        return self._memory("VmRSS")

    def peak_bytes(self, act: Callable[[], object]) -> int:
        """How much more of it the broker has for a moment while something is done."""
        before_bytes = self.memory_bytes()
        (self._process / "clear_refs").write_text("5")  # Forget the peak that was.
        act()
        return self._memory("VmHWM") - before_bytes

    def connections(self) -> int:
        """How many the broker counts."""
        found = _ACTIVE.search(self.broker.http("/metrics")[1])
        assert found is not None
        return int(float(found[1]))

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        logged_bytes = self.broker.log.stat().st_size
        before_bytes = self.memory_bytes()
        yield
        self._check_honest()
        wait_until(lambda: self.connections() == 0, "strangers to be gone", seconds_max=15)
        self._check_log(self.broker.logged(logged_bytes))
        wait_until(
            lambda: self.memory_bytes() - before_bytes < GROWTH_BYTES_MAX,
            "memory to return",
            seconds_max=10,
            seen=lambda: (self.memory_bytes() - before_bytes) >> 20,
        )

    @property
    def _process(self) -> Path:
        return Path(f"/proc/{self.broker.pid}")

    def _memory(self, kind: str) -> int:
        status = (self._process / "status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(kind))
        return int(line.split()[1]) * 1024

    def _check_honest(self) -> None:
        topic = f"topic-{uuid4()}"
        for listener in (INSIDE, SECURE, MUTUAL):
            with self.admin(listener) as wire:
                if listener == INSIDE:
                    wire.create(topic)
                assert wire.produce(topic, batch_of([listener.encode()])).error_code == 0
                assert wire.read(topic)[-1].value == listener.encode()
        with self.stranger(OPEN) as wire:
            assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("honest", "1")).error_code == 0

    def _check_log(self, logged: str) -> None:
        trouble = [line for line in logged.splitlines() if _TROUBLE.search(line)]
        assert not trouble, "\n".join(trouble[:20])
        for secret in self.secrets:
            assert secret not in logged

    def _way(self, listener: str) -> WayIn:
        if listener == MUTUAL:
            return self.broker.certificate(ADMIN)
        way: Any = self.broker.plain(ADMIN)
        if listener == SECURE:
            return way
        return way.but(port=self.port(listener), authority=None)
