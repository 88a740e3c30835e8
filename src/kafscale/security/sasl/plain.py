"""`PlainExchange`: a server that is told the user and the password as they are (RFC 4616).

    [authorization id] NUL user NUL password

The laws: a user that does not exist and a password that is wrong are the same sentence, and take
the same time. Nobody speaks for somebody else. Who the users are is left to `plain_users`; that the
connection is encrypted, to those who set up listeners.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kafscale.errors import AuthenticationError
from kafscale.security.principal import USER, Identity
from kafscale.security.sasl.authenticator import Step

TOKEN_BYTES_MAX: Final = 4 * 1024
"""Far more than the 255 bytes of each part that RFC 4616 asks for."""


class PlainExchange:
    """One attempt; it takes one token."""

    def __init__(self, is_right: Callable[[str, str], bool]) -> None:
        """`is_right` says whether that user has that password."""
        self._is_right = is_right
        self.claimed = ""

    def step(self, token: bytes) -> Step:
        authorization_id, user, password = _parts(token)
        self.claimed = user
        if not user:
            raise AuthenticationError("Authentication failed: username not specified")
        if not password:
            raise AuthenticationError("Authentication failed: password not specified")
        if not self._is_right(user, password):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        return Step(b"", Identity(USER + user))


def _parts(token: bytes) -> tuple[str, str, str]:
    with suppress(ValueError):  # Too few parts, too many, or not text.
        if len(token) <= TOKEN_BYTES_MAX:
            authorization_id, user, password = token.decode().split("\0")
            return authorization_id, user, password
    raise AuthenticationError(
        "Invalid SASL/PLAIN response: expected an authorization id, a user and a password"
    )
