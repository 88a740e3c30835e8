"""SASL sessions with a scripted mechanism, whose tokens say what happens:

b"User:alice"         authenticates alice.
b"User:alice 5000"    authenticates alice until 5000 ms.
b"more"               is one of several tokens.
b"wrong"              is not valid.
"""

from types import SimpleNamespace
from typing import Any

from kafscale.broker.network.connection import Connection
from kafscale.broker.network.listener_config import Listener, SecurityProtocol
from kafscale.broker.network.listener_context import Limits, ListenerContext
from kafscale.broker.requests.route import route
from kafscale.broker.requests.routes import ROUTES
from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.sasl_login import UNAUTHENTICATED_APIS, SaslSessions
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
from unit.broker.harness import (
    LIMITS,
    Peer,
    Timer,
    Transport,
    decode_response,
    dispatcher,
    heartbeat_handler,
    request,
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-512")
LISTENER = Listener("OUTSIDE", SecurityProtocol.SASL_PLAINTEXT)
SASL = Sasl(enabled_mechanisms=MECHANISMS, receive_bytes_max=1024)
SASL_ROUTES = tuple(each for each in ROUTES if each.api.key in UNAUTHENTICATED_APIS)
HEARTBEAT_ROUTE = route(HEARTBEAT, heartbeat_handler)


class ScriptedExchange:
    """An exchange that follows its tokens."""

    claimed_user = "claimed"

    def evaluate_response(self, token: bytes) -> SaslStep:
        match token.split():
            case [b"more"]:
                return SaslStep(b"continue")
            case [b"refused"]:
                return SaslStep(b"say yes", failure="that is not enough")
            case [principal] if principal.startswith(b"User:"):
                return SaslStep(b"welcome", Principal(principal.decode()))
            case [principal, expires_ms]:
                return SaslStep(
                    b"welcome", Principal(principal.decode(), expires_ms=int(expires_ms))
                )
        raise AuthenticationError("the token is not valid")


class RecordingAuditLog(AuditLog):
    """An audit log that records logins."""

    def __init__(self) -> None:
        super().__init__(SecurityCounters(), lambda: 0, lambda _seconds, _call: None)
        self.events: list[tuple[str, ...]] = []

    def logged_in(self, client: Any, mechanism: str) -> None:
        self.events.append(("in", client.principal.full_name, mechanism))

    def login_failed(self, _client: Any, mechanism: str, claimed: str, reason: str) -> None:
        self.events.append(("failed", mechanism, claimed, reason))


def new_sasl_sessions(
    clock: Any, audit: AuditLog | None = None, settings: Sasl = SASL
) -> SaslSessions:
    mechanisms: Any = SimpleNamespace(
        offered=lambda _listener: MECHANISMS, create_server=lambda _mechanism: ScriptedExchange()
    )
    return SaslSessions(mechanisms, settings, audit or RecordingAuditLog(), clock)


class SaslPeer(Peer):
    """A peer of a listener that requires SASL authentication."""

    def __init__(
        self, clock: Any = lambda: 0, settings: Sasl = SASL, limits: Limits = LIMITS
    ) -> None:
        self.timer = Timer()
        self.transport = Transport()
        self.closed = False
        self.audit = RecordingAuditLog()
        self.dispatcher = dispatcher(HEARTBEAT_ROUTE, *SASL_ROUTES, timer=self.timer)
        self.sessions = new_sasl_sessions(clock, self.audit, settings)
        context = ListenerContext(
            self.dispatcher,
            limits,
            on_opened=lambda _: True,
            on_closed=self._on_closed,
            listener=LISTENER,
            sasl_sessions=self.sessions,
        )
        self.connection = Connection(context, self.timer.now)
        self.connection.connection_made(self.transport)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> int:
        """Request a mechanism; returns the error code."""
        self.send(request(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism)))
        return int(self.last(SASL_HANDSHAKE, version).error_code)

    def authenticate(self, token: bytes) -> None:
        self.send(request(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)))

    def authenticated(self, token: bytes) -> SaslAuthenticateResponse:
        self.authenticate(token)
        response: SaslAuthenticateResponse = self.last(SASL_AUTHENTICATE, 2)
        return response

    def log_in(self, token: bytes = b"User:alice") -> SaslAuthenticateResponse:
        assert self.handshake() == 0
        return self.authenticated(token)

    def request_api_versions(self) -> None:
        self.send(request(API_VERSIONS, 3, ApiVersionsRequest("sasl-peer", "1")))

    def last(self, api: Api[Any, Any], version: int) -> Any:
        """The last response, decoded for this API."""
        return decode_response(self.frames()[-1], api, version)[1]

    def frames(self) -> list[memoryview]:
        return FrameReader().feed(self.transport.written)
