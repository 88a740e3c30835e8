"""`SaslServer`: one attempt to show who one is, by one SASL mechanism: bytes in, bytes out.

    exchange = mechanisms.create_server("SCRAM-SHA-256")
    step = exchange.step(token)      # AuthenticationError: wrong, and this attempt is over.
    answer(step.token)
    if step.identity is not None:    # Done: this is who it is.

The laws: an exchange does no I/O and reads no clock but the one it was given. What it raises says
nothing that helps to guess: whether the user exists or the password is wrong is the same sentence.
"""

from typing import Protocol

import msgspec

from kafscale.security.principal import Principal


class SaslStep(msgspec.Struct, frozen=True):
    """What is answered to a token."""

    token: bytes
    principal: Principal | None = None
    """Who it is, when this was the last step; None asks for another token."""
    failure: str = ""
    """Why the next token cannot help any more, where a mechanism has the client ask for it."""


class SaslServer(Protocol):
    """The server's side of a mechanism, for one attempt."""

    claimed_user: str
    """Who the client says it is, for the log; empty as long as it has not said it."""

    def evaluate_response(self, token: bytes) -> SaslStep:
        """Take the client's token; raises `AuthenticationError` where it does not convince."""


class SaslClient(Protocol):
    """The client's side of a mechanism, for one attempt."""

    def initial_response(self) -> bytes:
        """What to send first."""

    def evaluate_challenge(self, challenge: bytes) -> bytes | None:
        """What to send next; None when the server has said all that it has to.

        Raises `AuthenticationError` where the server is not the right one.
        """
