"""`Wire` at a listener that asks who one is: encrypted if need be, and logged in, token by token.

with LoginWire(port, tls=context) as wire:
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


class LoginWire(Wire):
    """One connection to a broker that does not take everybody."""

    def __init__(
        self,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        name: str = "localhost",
        timeout_s: float = 10,
    ) -> None:
        """`name` is what the certificate of the broker has to be for."""
        super().__init__(port, timeout_s=timeout_s)
        if tls is not None:
            try:
                self.socket: socket.socket = tls.wrap_socket(self.socket, server_hostname=name)
            except OSError:
                self.socket.close()
                raise

    def handshake(self, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
        answer = self.call(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
        assert isinstance(answer, SaslHandshakeResponse)
        return answer

    def authenticate(self, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
        answer = self.call(SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def try_in(self, user: str, password: str) -> SaslAuthenticateResponse:
        """By PLAIN, as clients do it today."""
        assert self.handshake("PLAIN").error_code == 0
        return self.authenticate(plain_token(user, password))

    def log_in(self, user: str, password: str) -> None:
        """The same, which must succeed."""
        answer = self.try_in(user, password)
        assert answer.error_code == 0, answer.error_message

    def say(self, data: bytes) -> None:
        """Send a frame that holds just this."""
        self.socket.sendall(LENGTH.pack(len(data)) + data)

    def drain(self) -> bytes:
        """Everything that the broker still says until it hangs up, which it must."""
        said = bytearray()
        try:
            while data := self.socket.recv(1 << 16):
                said += data
        except (ConnectionError, ssl.SSLError):
            pass  # So it has hung up, more rudely.
        return bytes(said)
