"""`SaslServer` and `SaslClient`: the two sides of one SASL authentication. Bytes in, bytes out.

    server = mechanisms.create_server("SCRAM-SHA-256")
    step = server.evaluate_response(token)  # AuthenticationError: the attempt has failed.
    send(step.token)
    if step.principal is not None:          # The client is authenticated.

Implementations do no I/O and use no clock but the one that is passed in. Error messages do not help
attackers: an unknown user and a wrong password give the same text.
"""

from typing import Protocol

import msgspec

from kafscale.security.principal import Principal


class SaslStep(msgspec.Struct, frozen=True):
    """The server's reply to a client token."""

    token: bytes
    principal: Principal | None = None
    """Set by the last step; None asks for another token."""
    failure: str = ""
    """Why the authentication will fail with the next token, if the mechanism requires one more."""


class SaslServer(Protocol):
    """The server side of a mechanism, for one attempt."""

    claimed_user: str
    """The user name that the client claims, for the log; empty until it is sent."""

    def evaluate_response(self, token: bytes) -> SaslStep:
        """Evaluate a token of the client; raises `AuthenticationError` if it is not valid."""


class SaslClient(Protocol):
    """The client side of a mechanism, for one attempt."""

    def initial_response(self) -> bytes:
        """The first token to send."""

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """The next token to send; None when the authentication is complete.

        Raises `AuthenticationError` if the server cannot be trusted.
        """
