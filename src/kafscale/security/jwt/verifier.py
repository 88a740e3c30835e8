"""`TokenVerifier`: verifies signed JSON Web Tokens (RFC 7519). Pure: keys and clock are passed in.

No claim is used before the signature is verified, with a trusted key and an algorithm for that type
of key. A token without an expiry is rejected. Error messages say what is wrong, and contain nothing
of the token.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from jwt import PyJWS, PyJWTError

from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError
from kafscale.security.jwt.keys import ALGORITHMS, PublicKey
from kafscale.security.principal import GROUP_PREFIX, USER_PREFIX, Principal

FindKeys = Callable[[str | None, str], Sequence[PublicKey]]
"""Returns candidate keys by key id and algorithm."""

INVALID_TOKEN: Final = "invalid_token"  # noqa: S105 - a name, not a secret.
INSUFFICIENT_SCOPE: Final = "insufficient_scope"

_TIME_S_MAX: Final = 1 << 40
_ACCEPTED: Final = frozenset(name for names in ALGORITHMS.values() for name in names)


class TokenError(AuthenticationError):
    """A rejected token; `status` is an error code of RFC 6750."""

    def __init__(self, reason: str, status: str = INVALID_TOKEN) -> None:
        super().__init__(f"Authentication failed: {reason}")
        self.reason = reason
        self.status = status


class TokenVerifier:
    """Verifies tokens by the settings."""

    def __init__(self, settings: Sasl, find_keys: FindKeys, clock: Callable[[], int]) -> None:
        self._settings = settings
        self._find_keys = find_keys
        self._clock = clock
        self._signatures = PyJWS(algorithms=sorted(_ACCEPTED))

    def verify(self, token: str) -> Principal:
        """Return the principal of a token; raises `TokenError`."""
        claims = _Claims(self._payload(token))
        expires_ms = self._check_times(claims)
        self._check_origin(claims)
        self._check_scopes(claims)
        name = claims.text(self._settings.oauth_principal_claim)
        if not name.strip():
            raise TokenError(f"the token has no claim {self._settings.oauth_principal_claim}")
        groups = claims.texts(self._settings.oauth_groups_claim)
        return Principal(
            USER_PREFIX + name, tuple(GROUP_PREFIX + group for group in groups), expires_ms
        )

    def _payload(self, token: str) -> bytes:
        """Verify the signature and return the payload."""
        try:
            header = self._signatures.get_unverified_header(token)
        except (PyJWTError, ValueError, RecursionError):
            raise TokenError("the token is not a signed JWT") from None
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in _ACCEPTED:
            raise TokenError("the token's signature algorithm is not accepted")
        keys = self._find_keys(header.get("kid"), algorithm)
        if not keys:
            raise TokenError("the token is signed with an unknown key")
        for key in keys:
            payload = self._verified(token, key, algorithm)
            if payload is not None:
                return payload
        raise TokenError("the token's signature is invalid")

    def _verified(self, token: str, key: PublicKey, algorithm: str) -> bytes | None:
        try:
            return bytes(self._signatures.decode(token, key, algorithms=[algorithm]))
        except (PyJWTError, ValueError, RecursionError):
            return None

    def _check_times(self, claims: "_Claims") -> int:
        """Return the expiry in ms since 1970."""
        now_ms = self._clock()
        skew_ms = self._settings.oauth_clock_skew_sec * 1000
        expires_ms = claims.time_ms("exp")
        if expires_ms is None:
            raise TokenError("the token has no expiry (exp)")
        if now_ms - skew_ms >= expires_ms:
            raise TokenError("the token has expired")
        for name in ("nbf", "iat"):
            valid_from_ms = claims.time_ms(name)
            if valid_from_ms is not None and now_ms + skew_ms < valid_from_ms:
                raise TokenError(f"the token is not valid yet ({name})")
        return expires_ms

    def _check_origin(self, claims: "_Claims") -> None:
        issuer = self._settings.oauth_expected_issuer
        if issuer and claims.text("iss") != issuer:
            raise TokenError("the token has another issuer (iss)")
        audience = self._settings.oauth_expected_audience
        if audience and not set(audience) & set(claims.texts("aud")):
            raise TokenError("the token has another audience (aud)")

    def _check_scopes(self, claims: "_Claims") -> None:
        listed = claims.texts(self._settings.oauth_scope_claim)
        # Most issuers send scopes as one space-separated text.
        granted = {scope for text in listed for scope in text.split()}
        if not granted.issuperset(self._settings.oauth_required_scopes):
            raise TokenError("the token does not have the required scopes", INSUFFICIENT_SCOPE)


class _Claims:
    """The claims of a verified token."""

    def __init__(self, payload: bytes) -> None:
        try:
            self._values = msgspec.json.decode(payload, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise TokenError("the token has no claims") from None

    def text(self, name: str) -> str:
        """A text claim, or empty if it is missing."""
        value = self._values.get(name, "")
        if not isinstance(value, str):
            raise TokenError(f"the claim {name} of the token is not text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A claim that is text or a list of text; empty if it is missing."""
        value = self._values.get(name)
        listed = [value] if isinstance(value, str) else ([] if value is None else value)
        if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
            raise TokenError(f"the claim {name} of the token is not a list of text")
        return tuple(listed)

    def time_ms(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TokenError(f"the claim {name} of the token is not a time")
        if not math.isfinite(value) or not 0 <= value <= _TIME_S_MAX:
            raise TokenError(f"the claim {name} of the token is not a time")
        return int(value * 1000)
