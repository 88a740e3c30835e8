"""`PlainSaslServer`: the server side of SASL/PLAIN (RFC 4616).

    [authorization id] NUL user NUL password

An unknown user and a wrong password give the same error, in the same time. The authorization id
must be empty or the user's own name. `PlainUsers` verifies passwords; listeners decide about
encryption.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kafscale.errors import AuthenticationError
from kafscale.security.principal import USER_PREFIX, Principal
from kafscale.security.sasl.authenticator import SaslStep

TOKEN_BYTES_MAX: Final = 4 * 1024
"""Far more than the 255 bytes per field that RFC 4616 requires."""


class PlainSaslServer:
    """One authentication attempt, with one token."""

    def __init__(self, verify_password: Callable[[str, str], bool]) -> None:
        """`verify_password` returns whether a user has a password."""
        self._verify_password = verify_password
        self.claimed_user = ""

    def evaluate_response(self, token: bytes) -> SaslStep:
        authorization_id, user, password = _parts(token)
        self.claimed_user = user
        if not user:
            raise AuthenticationError("Authentication failed: username not specified")
        if not password:
            raise AuthenticationError("Authentication failed: password not specified")
        if not self._verify_password(user, password):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", user}:
            raise AuthenticationError(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        return SaslStep(b"", Principal(USER_PREFIX + user))


def _parts(token: bytes) -> tuple[str, str, str]:
    with suppress(ValueError):  # Wrong number of fields, or not UTF-8.
        if len(token) <= TOKEN_BYTES_MAX:
            authorization_id, user, password = token.decode().split("\0")
            return authorization_id, user, password
    raise AuthenticationError(
        "Invalid SASL/PLAIN response: expected an authorization id, a user and a password"
    )
