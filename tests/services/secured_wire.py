"""A connection that logs in step by step, in the right order or in any other.

with SecuredWire(broker.plain("alice")) as wire:
    wire.handshake("PLAIN")
    answer = wire.authenticate(plain_token("alice", "…"))
"""

from random import SystemRandom

from kafscale.auth.initiations import initiation
from kafscale.protocol.frame import frame
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from kafscale.protocol.messages.sasl_authenticate import (
    SASL_AUTHENTICATE,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafscale.protocol.messages.sasl_handshake import (
    SASL_HANDSHAKE,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from services.way_in import HOST, WayIn
from services.wire import Wire


def plain_token(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()


class SecuredWire(Wire):
    """One connection to where a way in leads; nobody is logged in yet."""

    def __init__(self, way: WayIn, *, timeout_s: float = 10) -> None:
        super().__init__(way.port, timeout_s=timeout_s)
        if way.protocol.endswith("SSL"):
            self.socket = way.tls().wrap_socket(self.socket, server_hostname=HOST)

    def handshake(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        answer = self.call(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
        assert isinstance(answer, SaslHandshakeResponse)
        return answer

    def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        answer = self.call(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def log_in(self, user: str, password: str) -> SaslAuthenticateResponse:
        """By PLAIN, as clients do it today."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(plain_token(user, password))

    def enter(self, way: WayIn) -> int:
        """By the mechanism of a way, if it has one; the error that comes of it."""
        if not way.mechanism:
            return 0
        assert self.handshake(way.mechanism).error_code == 0
        bearer = way.token() if way.token else ""
        attempt = initiation(way.mechanism, way.user, way.password, bearer, SystemRandom())
        token: bytes | None = attempt.first()
        while token is not None:
            answer = self.authenticate(token)
            if answer.error_code:
                return answer.error_code
            token = attempt.next(bytes(answer.token))
        return 0

    def send_bare(self, token: bytes) -> None:
        """Send a token without any header, as clients did after the first SaslHandshake."""
        self.socket.sendall(b"".join(frame(token, [b""])))

    def metadata(self) -> MetadataResponse:
        """A request like any other."""
        answer = self.call(METADATA, 9, MetadataRequest(topics=None))
        assert isinstance(answer, MetadataResponse)
        return answer
