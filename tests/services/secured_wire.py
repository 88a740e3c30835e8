"""A connection that authenticates step by step, in the right order or any other.

with SecuredWire(broker.plain("alice")) as wire:
    wire.handshake("PLAIN")
    response = wire.authenticate(plain_token("alice", "…"))
"""

from random import SystemRandom

from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from kafscale.security.sasl.client import create_client
from services.client_config import HOST, ClientConfig
from services.sasl_wire import SaslWire


class SecuredWire(SaslWire):
    """One connection to the listener of a config, not authenticated yet."""

    def __init__(self, config: ClientConfig, *, timeout_s: float = 10) -> None:
        tls = config.tls() if config.protocol.endswith("SSL") else None
        super().__init__(config.port, tls=tls, name=HOST, timeout_s=timeout_s)

    def log_in_with(self, config: ClientConfig) -> int:
        """Authenticate by the mechanism of a config, if it has one; return the error code."""
        if not config.mechanism:
            return 0
        assert self.handshake(config.mechanism).error_code == 0
        bearer = config.token() if config.token else ""
        attempt = create_client(
            config.mechanism, config.user, config.password, bearer, SystemRandom()
        )
        token: bytes | None = attempt.initial_response()
        while token is not None:
            response = self.authenticate(token)
            if response.error_code:
                return response.error_code
            token = attempt.evaluate_challenge(bytes(response.token))
        return 0

    def metadata(self) -> MetadataResponse:
        """Send a Metadata request, as an example of a request that needs authentication."""
        response = self.call(METADATA, 9, MetadataRequest(topics=None))
        assert isinstance(response, MetadataResponse)
        return response
