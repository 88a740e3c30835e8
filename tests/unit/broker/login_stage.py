"""Logins whose tokens say what happens: what tests of those who are not in yet share.

b"User:alice"         is alice, and convinces.
b"User:alice 5000"    does so until 5000 ms.
b"more"               is one of several.
b"wrong"              does not convince.
"""

from types import SimpleNamespace
from typing import Any

from kafscale.broker.network.connection import Connection, Limits, Lobby
from kafscale.broker.network.listener_config import Listener, Protocol
from kafscale.broker.requests.route import route
from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.security.audit import Audit
from kafscale.broker.security.sasl_login import OPEN_APIS, Logins
from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.protocol.api import Api
from kafscale.protocol.frame import FrameReader
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT
from kafscale.protocol.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from kafscale.security.principal import Principal
from kafscale.security.sasl.authenticator import SaslStep
from unit.broker.harness import LIMITS, Peer, Timer, Transport, answer, beat, dispatcher, request

OFFERED = ("PLAIN", "SCRAM-SHA-512")
LISTENER = Listener("OUTSIDE", Protocol.SASL_PLAINTEXT)
SASL = Sasl(enabled_mechanisms=OFFERED, receive_bytes_max=1024)
ROUTES_IN = tuple(served for served in ROUTES if served.api.key in OPEN_APIS)
BEAT = route(HEARTBEAT, beat)


class Scripted:
    """An exchange that does what its tokens say."""

    claimed_user = "somebody"

    def evaluate_response(self, token: bytes) -> SaslStep:
        match token.split():
            case [b"more"]:
                return SaslStep(b"go on")
            case [b"refused"]:
                return SaslStep(b"say yes", failure="that is not enough")
            case [principal] if principal.startswith(b"User:"):
                return SaslStep(b"welcome", Principal(principal.decode()))
            case [principal, expires_ms]:
                return SaslStep(
                    b"welcome", Principal(principal.decode(), expires_ms=int(expires_ms))
                )
        raise AuthenticationError("that does not convince")


class Audience(Audit):
    """An audit that remembers what it was told of logins."""

    def __init__(self) -> None:
        super().__init__(SecurityCounters(), lambda: 0)
        self.told: list[tuple[str, ...]] = []

    def logged_in(self, client: Any, mechanism: str) -> None:
        self.told.append(("in", client.identity.full_name, mechanism))

    def login_failed(self, _client: Any, mechanism: str, claimed: str, reason: str) -> None:
        self.told.append(("failed", mechanism, claimed, reason))


def new_logins(clock: Any, audit: Audit | None = None, settings: Sasl = SASL) -> Logins:
    mechanisms: Any = SimpleNamespace(
        offered=lambda _listener: OFFERED, create_server=lambda _mechanism: Scripted()
    )
    return Logins(mechanisms, settings, audit or Audience(), clock)


class Stranger(Peer):
    """A peer at a listener that has clients log in."""

    def __init__(
        self, clock: Any = lambda: 0, settings: Sasl = SASL, limits: Limits = LIMITS
    ) -> None:
        self.timer = Timer()
        self.transport = Transport()
        self.closed = False
        self.audit = Audience()
        self.dispatcher = dispatcher(BEAT, *ROUTES_IN, timer=self.timer)
        lobby = Lobby(
            self.dispatcher,
            limits,
            opened=lambda _: True,
            closed=self._on_closed,
            listener=LISTENER,
            logins=new_logins(clock, self.audit, settings),
        )
        self.connection = Connection(lobby, self.timer.now)
        self.connection.connection_made(self.transport)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> int:
        """Name a mechanism: the error code of the answer."""
        self.send(request(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism)))
        return int(self.last(SASL_HANDSHAKE, version).error_code)

    def authenticate(self, token: bytes) -> None:
        self.send(request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)))

    def authenticated(self, token: bytes) -> SaslAuthenticateResponse:
        self.authenticate(token)
        found: SaslAuthenticateResponse = self.last(SASL_AUTHENTICATE, 2)
        return found

    def log_in(self, token: bytes = b"User:alice") -> SaslAuthenticateResponse:
        assert self.handshake() == 0
        return self.authenticated(token)

    def ask_versions(self) -> None:
        self.send(request(API_VERSIONS, 3, ApiVersionsRequest("stranger", "1")))

    def last(self, api: Api[Any, Any], version: int) -> Any:
        """The last answer, as one to this API."""
        return answer(self.frames()[-1], api, version)[1]

    def frames(self) -> list[memoryview]:
        return FrameReader().feed(self.transport.written)
