"""A `Wire` with TLS and SASL, which authenticates step by step.

with SaslWire(port, tls=context) as wire:
    wire.log_in("alice", "secret")
    wire.call(METADATA, 12, MetadataRequest(topics=None))
"""

import socket
import ssl

from kafscale.protocol.frame import LENGTH
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
from services.wire import Wire


def plain_token(user: str, password: str) -> bytes:
    return f"\0{user}\0{password}".encode()


class SaslWire(Wire):
    """One connection to a listener with authentication."""

    def __init__(
        self,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        name: str = "localhost",
        timeout_s: float = 10,
    ) -> None:
        """`name` is the host name that the broker's certificate has to match."""
        super().__init__(port, timeout_s=timeout_s)
        if tls is not None:
            try:
                self.socket: socket.socket = tls.wrap_socket(self.socket, server_hostname=name)
            except OSError:
                self.socket.close()
                raise

    def handshake(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        response = self.call(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
        assert isinstance(response, SaslHandshakeResponse)
        return response

    def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        response = self.call(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))
        assert isinstance(response, SaslAuthenticateResponse)
        return response

    def try_log_in(self, user: str, password: str) -> SaslAuthenticateResponse:
        """Authenticate by PLAIN and return the response."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(plain_token(user, password))

    def log_in(self, user: str, password: str) -> None:
        """Authenticate by PLAIN, which must succeed."""
        response = self.try_log_in(user, password)
        assert response.error_code == 0, response.error_message

    def send_frame(self, data: bytes) -> None:
        """Send these bytes as one frame."""
        self.socket.sendall(LENGTH.pack(len(data)) + data)

    def read_until_closed(self) -> bytes:
        """Read until the broker closes the connection, and return what it sent."""
        received = bytearray()
        try:
            while data := self.socket.recv(1 << 16):
                received += data
        except (ConnectionError, ssl.SSLError):
            pass  # A reset closes the connection too.
        return bytes(received)
