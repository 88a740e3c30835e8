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
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from services.wire import Wire


class LoginWire(Wire):
    """One connection to a broker that does not take everybody."""

    def __init__(
        self, port: int, *, tls: ssl.SSLContext | None = None, timeout_s: float = 10
    ) -> None:
        super().__init__(port, timeout_s=timeout_s)
        if tls is not None:
            try:
                self.socket: socket.socket = tls.wrap_socket(
                    self.socket, server_hostname="localhost"
                )
            except OSError:
                self.socket.close()
                raise

    def handshake(self, mechanism: str, version: int = 1) -> int:
        """The error code of the answer."""
        answer = self.call(SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
        return int(answer.error_code)

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse:
        answer: SaslAuthenticateResponse = self.call(
            SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token)
        )
        return answer

    def log_in(self, user: str, password: str) -> None:
        """By PLAIN, which must succeed."""
        assert self.handshake("PLAIN") == 0
        answer = self.authenticate(f"\0{user}\0{password}".encode())
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
