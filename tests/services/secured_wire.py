"""A connection that logs in step by step, in the right order or in any other.

with SecuredWire(broker.plain("alice")) as wire:
    wire.handshake("PLAIN")
    answer = wire.authenticate(plain_token("alice", "…"))
"""

from random import SystemRandom

from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from kafscale.security.sasl.client import create_client
from services.login_wire import LoginWire
from services.way_in import HOST, WayIn


class SecuredWire(LoginWire):
    """One connection to where a way in leads; nobody is logged in yet."""

    def __init__(self, way: WayIn, *, timeout_s: float = 10) -> None:
        tls = way.tls() if way.protocol.endswith("SSL") else None
        super().__init__(way.port, tls=tls, name=HOST, timeout_s=timeout_s)

    def enter(self, way: WayIn) -> int:
        """By the mechanism of a way, if it has one; the error that comes of it."""
        if not way.mechanism:
            return 0
        assert self.handshake(way.mechanism).error_code == 0
        bearer = way.token() if way.token else ""
        attempt = create_client(way.mechanism, way.user, way.password, bearer, SystemRandom())
        token: bytes | None = attempt.initial_response()
        while token is not None:
            answer = self.authenticate(token)
            if answer.error_code:
                return answer.error_code
            token = attempt.evaluate_challenge(bytes(answer.token))
        return 0

    def metadata(self) -> MetadataResponse:
        """A request like any other."""
        answer = self.call(METADATA, 9, MetadataRequest(topics=None))
        assert isinstance(answer, MetadataResponse)
        return answer
