"""The way in of one connection: which SASL exchange is under way, who came out of it, for how long.

    (nothing) ──SaslHandshake──▶ an exchange ──SaslAuthenticate … ──▶ in ──its session ends──▶ out
                                                                       └──SaslHandshake──▶ again

The laws:

* Before somebody is in, nothing is served but ApiVersions, SaslHandshake and SaslAuthenticate.
* When a session has ended, nothing else is served until the client has shown again who it is
  (KIP-368); it has to be the same somebody, by the same mechanism.
* After a failure nothing more is served on the connection.
* Whom the tokens prove is left to the exchange of the mechanism; nothing here reads a secret.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from kafscale.broker.security.audit import Audit
from kafscale.broker.security.login_backoff import LoginBackoff
from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError, IllegalSaslStateError, UnsupportedMechanismError
from kafscale.protocol.messages.api_versions import API_VERSIONS
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE
from kafscale.security.principal import Principal
from kafscale.security.sasl.authenticator import SaslServer

if TYPE_CHECKING:
    from kafscale.broker.requests.context import ClientInfo
    from kafscale.security.sasl.mechanisms import Mechanisms

OPEN_APIS: Final = frozenset({API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key})
"""What anybody may ask."""

BARE_TOKENS_VERSION: Final = 0
"""The version of SaslHandshake after which tokens come without any header."""


class Passed(msgspec.Struct, frozen=True):
    """What is answered to a token that convinces, or to one that is not the last."""

    token: bytes
    session_lifetime_ms: int = 0


class Logins:
    """What the logins of a broker share."""

    def __init__(
        self,
        mechanisms: "Mechanisms",
        settings: Sasl,
        audit: Audit,
        clock: Callable[[], int],
        throttled_ms: Callable[[Principal], int] = lambda _identity: 0,
    ) -> None:
        """`throttled_ms` says how long somebody has to wait who has just logged in."""
        self.mechanisms = mechanisms
        self.audit = audit
        self.clock = clock
        self.throttled_ms = throttled_ms
        self.receive_bytes_max = settings.receive_bytes_max
        self.session_ms_max = settings.max_reauth_ms
        self.backoff = LoginBackoff(settings.failed_delay_ms, settings.failed_delay_ms_max)

    def open(self, listener: str) -> "Login":
        return Login(self, self.mechanisms.offered(listener))


class Login:
    """Where one connection stands."""

    __slots__ = (
        "_exchange",
        "_logins",
        "_mechanism",
        "delay_ms",
        "expires_ms",
        "identity",
        "is_bare",
        "offered",
    )

    def __init__(self, logins: Logins, offered: tuple[str, ...]) -> None:
        self._logins = logins
        self.offered = offered
        self._mechanism = ""
        self._exchange: SaslServer | None = None
        self.delay_ms: int | None = None
        """How long to hold back the answer to the attempt that has failed, in ms."""
        self.is_bare = False
        """Whether the next frame is a token and nothing else."""
        self.identity: Principal | None = None
        self.expires_ms: int | None = None

    @property
    def receive_bytes_max(self) -> int:
        """The largest frame of somebody who is not in."""
        return self._logins.receive_bytes_max

    def admits(self, api_key: int) -> bool:
        """Whether such a request may be served now."""
        if api_key in OPEN_APIS:
            return True
        if self.identity is None:
            return False
        return self.expires_ms is None or self._logins.clock() < self.expires_ms

    def handshake(self, client: "ClientInfo", mechanism: str, version: int) -> None:
        """Begin an exchange."""
        if self._exchange is not None:
            raise IllegalSaslStateError("an authentication is under way already")
        if mechanism not in self.offered:
            self._logins.audit.not_offered(client, mechanism)
            raise UnsupportedMechanismError(f"{mechanism} is not offered here")
        if self.identity is not None and mechanism != self._mechanism:
            raise IllegalSaslStateError("who logs in again has to use the same mechanism")
        self._mechanism = mechanism
        self._exchange = self._logins.mechanisms.create_server(mechanism)
        self.is_bare = version == BARE_TOKENS_VERSION

    def authenticate(self, client: "ClientInfo", token: bytes) -> Passed:
        """Take the next token; raises `AuthenticationError`, after which the client has to go."""
        if self._exchange is None:
            raise IllegalSaslStateError("no SaslHandshake has come before")
        try:
            step = self._exchange.evaluate_response(token)
            if step.failure:
                self._tell_failure(client, self._exchange, step.failure)
            if step.principal is None:
                return Passed(step.token)
            self._check_same(step.principal)
        except AuthenticationError as error:
            self._tell_failure(client, self._exchange, str(error))
            self._exchange = None
            self.identity = None
            client.is_leaving = True
            raise
        self._exchange = None
        self.is_bare = False
        if self.identity is None:
            client.throttled_ms = self._logins.throttled_ms(step.principal)
        self.identity = client.identity = step.principal
        lifetime_ms = self._begin_session(step.principal)
        self._logins.audit.logged_in(client, self._mechanism)
        return Passed(step.token, lifetime_ms)

    def _tell_failure(self, client: "ClientInfo", exchange: SaslServer, reason: str) -> None:
        """Note a failure, once for each attempt: who fails may leave before the last word."""
        if self.delay_ms is None:
            self._logins.audit.login_failed(client, self._mechanism, exchange.claimed_user, reason)
            self.delay_ms = self._logins.backoff.failed(client.host, self._logins.clock())

    def _begin_session(self, identity: Principal) -> int:
        """How long the session lasts, in ms; 0 for one that does not end."""
        now_ms = self._logins.clock()
        ends = [now_ms + self._logins.session_ms_max] if self._logins.session_ms_max else []
        if identity.expires_ms is not None:
            ends.append(identity.expires_ms)
        self.expires_ms = min(ends, default=None)
        return max(1, self.expires_ms - now_ms) if self.expires_ms is not None else 0

    def _check_same(self, identity: Principal) -> None:
        if self.identity is not None and identity.full_name != self.identity.full_name:
            raise AuthenticationError("who logs in again has to be the same as before")
