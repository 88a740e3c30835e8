"""A broker under attack, and the checks that hostile clients do no harm.

    with AttackHarness(directory) as attack, attack.assert_unharmed():
        ...  # attack the broker

Invariants that `assert_unharmed` checks: the broker runs; legitimate clients are served on every
listener; memory returns to about its former size; the log holds no traceback, no error and no
secret; no connection is left open.
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
from services.client_config import ClientConfig
from services.sasl_wire import SaslWire
from services.secured_broker import ADMIN, MECHANISMS, SecuredBroker, password_of
from services.waiting import wait_until
from services.wire import batch_of

GROWTH_BYTES_MAX = 48 << 20
"""Allocators keep some memory; tests open enough connections that a leak of 1 KiB shows."""
TIMEOUT_S = 1.0
"""How long a client has for its first request, and to authenticate."""
FRAME_S = 2.0
"""How long a client has to send a frame."""
OPEN, MUTUAL, SECURE, INSIDE = "OPEN", "MUTUAL", "SECURE", "INSIDE"
PLAINTEXT_LISTENERS = (OPEN, INSIDE)
TLS_LISTENERS = (MUTUAL, SECURE)

_ERROR_LINE = re.compile(r"Traceback|\"level\": \"(error|critical)\"|^(?!\{)")
"""Lines that fail the check: errors, and lines that are not JSON."""
_ACTIVE = re.compile(r"^kafscale_active_connections (\S+)$", re.MULTILINE)


class AttackHarness:
    """One broker with a listener of every security protocol, and short timeouts."""

    def __init__(self, directory: Path, **settings: str) -> None:
        defaults = {
            "sasl_enabled_mechanisms": ",".join(MECHANISMS),
            "network_connection_timeout": f"{TIMEOUT_S * 1000:.0f}ms",
            "network_request_timeout": f"{FRAME_S * 1000:.0f}ms",
            "sasl_failed_authentication_delay_ms": "10",
        }
        self.broker = SecuredBroker(directory, users=("alice",), **(defaults | settings))
        self.secrets = {password_of(ADMIN), password_of("alice")}
        """Texts that no log may hold; tests that use other secrets add them."""

    def __enter__(self) -> Self:
        self.broker.start()
        self._check_legitimate_clients()  # The first requests allocate memory that is kept.
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.terminate()

    def port(self, listener: str) -> int:
        return self.broker.ports[listener]

    def connect(self, listener: str = INSIDE, *, timeout_s: float = 10) -> SaslWire:
        """Connect without authentication."""
        return SaslWire(self.port(listener), timeout_s=timeout_s)

    def connect_socket(self, listener: str) -> socket.socket:
        """Connect with a plain socket."""
        return socket.create_connection((HOST, self.port(listener)), timeout=10)

    def client_hello(self) -> bytes:
        """The first bytes of a TLS handshake."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = self.broker.plain(ADMIN).tls()
        client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
        return outgoing.read()

    def admin(self, listener: str = INSIDE) -> SaslWire:
        """Connect as a super user."""
        config = self._client_config(listener)
        wire = SaslWire(config.port, tls=config.tls() if config.authority else None)
        if config.mechanism:
            wire.log_in(config.user, config.password)
        return wire

    def memory_bytes(self) -> int:
        """The resident memory of the broker."""
        return self._memory("VmRSS")

    def measure_peak_bytes(self, act: Callable[[], object]) -> int:
        """How much the resident memory of the broker grows at most during an action."""
        before_bytes = self.memory_bytes()
        (self._process / "clear_refs").write_text("5")  # Resets VmHWM.
        act()
        return self._memory("VmHWM") - before_bytes

    def connections(self) -> int:
        """The number of connections that the broker counts."""
        match = _ACTIVE.search(self.broker.http("/metrics")[1])
        assert match is not None
        return int(float(match[1]))

    @contextmanager
    def assert_unharmed(self) -> Iterator[None]:
        logged_bytes = self.broker.log.stat().st_size
        before_bytes = self.memory_bytes()
        yield
        self._check_legitimate_clients()
        wait_until(lambda: self.connections() == 0, "all connections to be closed", seconds_max=15)
        self._check_log(self.broker.logged(logged_bytes))
        wait_until(
            lambda: self.memory_bytes() - before_bytes < GROWTH_BYTES_MAX,
            "memory to be released",
            seconds_max=10,
            seen=lambda: (self.memory_bytes() - before_bytes) >> 20,
        )

    @property
    def _process(self) -> Path:
        return Path(f"/proc/{self.broker.process_id}")

    def _memory(self, kind: str) -> int:
        status = (self._process / "status").read_text()
        line = next(line for line in status.splitlines() if line.startswith(kind))
        return int(line.split()[1]) * 1024

    def _check_legitimate_clients(self) -> None:
        topic = f"topic-{uuid4()}"
        for listener in (INSIDE, SECURE, MUTUAL):
            with self.admin(listener) as wire:
                if listener == INSIDE:
                    wire.create(topic)
                assert wire.produce(topic, batch_of([listener.encode()])).error_code == 0
                assert wire.read(topic)[-1].value == listener.encode()
        with self.connect(OPEN) as wire:
            assert wire.call(API_VERSIONS, 3, ApiVersionsRequest("legitimate", "1")).error_code == 0

    def _check_log(self, logged: str) -> None:
        error_lines = [line for line in logged.splitlines() if _ERROR_LINE.search(line)]
        assert not error_lines, "\n".join(error_lines[:20])
        for secret in self.secrets:
            assert secret not in logged

    def _client_config(self, listener: str) -> ClientConfig:
        if listener == MUTUAL:
            return self.broker.certificate(ADMIN)
        config: Any = self.broker.plain(ADMIN)
        if listener == SECURE:
            return config
        return config.with_changes(port=self.port(listener), authority=None)
