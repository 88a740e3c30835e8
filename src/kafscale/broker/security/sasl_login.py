"""`SaslSession`: the SASL authentication of one connection, and how long it is valid.

    (start) ──SaslHandshake──▶ exchange ──SaslAuthenticate … ──▶ authenticated ──▶ expired
                                  ▲                                   │               │
                                  └───────────SaslHandshake───────────┴───────────────┘

Invariants:

* Before a client has authenticated, nothing is served but ApiVersions, SaslHandshake and
  SaslAuthenticate.
* When its session has expired, nothing else is served until it has reauthenticated (KIP-368), as
  the same principal and by the same mechanism.
* After a failure nothing more is served on the connection.
* The mechanism's exchange verifies the tokens; nothing here reads a secret.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kafscale.broker.security.audit import AuditLog
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

Response = TypeVar("Response")

UNAUTHENTICATED_APIS: Final = frozenset(
    {API_VERSIONS.key, SASL_HANDSHAKE.key, SASL_AUTHENTICATE.key}
)
"""The APIs that are served before authentication."""

RAW_TOKENS_VERSION: Final = 0
"""The version of SaslHandshake after which tokens come without a request header."""

BACKOFF_ENTRIES_MAX: Final = 10_000
BACKOFF_RESET_MS: Final = 10 * 60 * 1000

HOLD_MS_MAX: Final = 2_000
"""For how long the response to an attempt is held at most, right or wrong, after failures. Other
clients of the address, and the user itself, have to wait for as long."""

ATTEMPT_INTERVAL_MS: Final = 100
"""The time between two attempts of an address with failures, however many connections it has."""

QUEUE_MS_MAX: Final = 10_000
"""How long an attempt may have to wait for its turn; others are refused."""


class SaslResult(msgspec.Struct, frozen=True):
    """The response to a token that was accepted, or that is not the last one."""

    token: bytes
    session_lifetime_ms: int = 0


class FailureCounts:
    """How often logins have failed recently, by address or by user.

    Invariants: the number of entries is bounded, and failures are forgotten after
    `BACKOFF_RESET_MS` without another one. Pure: callers pass the time.
    """

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}
        """The count and the time of the last failure; the one that failed longest ago is first."""

    def get(self, name: str, now_ms: int) -> int:
        count, last_ms = self._counts.get(name, (0, now_ms))
        return 0 if now_ms - last_ms > BACKOFF_RESET_MS else count

    def add(self, name: str, now_ms: int) -> int:
        """Count a failure; return how many there were before."""
        count = self.get(name, now_ms)
        self._counts.pop(name, None)
        if len(self._counts) >= BACKOFF_ENTRIES_MAX:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = (count + 1, now_ms)
        return count


class LoginBackoff:
    """How long responses are delayed, so that passwords cannot be guessed quickly.

    The response to a failed login is delayed longer with every failure of the address. After a
    failure, every further attempt from the address, and for the user, is held for a while before
    its first response, whether it is right or wrong: an attacker who does not wait for a response
    would learn from silence. Attempts of the address take turns, so that many connections do not
    help. Responses are sent in order, so nothing overtakes a held one. Pure: callers pass the time.
    """

    def __init__(self, delay_ms: int, delay_ms_max: int) -> None:
        self._delay_ms = delay_ms
        self._delay_ms_max = delay_ms_max
        self._hosts = FailureCounts()
        self._users = FailureCounts()
        self._next_ms: dict[str, int] = {}
        """When the next attempt of an address may be answered."""

    def failed(self, host: str, user: str, now_ms: int) -> int:
        """Record a failure; returns for how long to delay its response, in ms.

        Never shorter than a success is held, so that the time of the response reveals nothing.
        """
        hold_ms = self.hold_user(user, now_ms)
        if user:
            self._users.add(user, now_ms)
        return max(self._after(self._hosts.add(host, now_ms)), hold_ms)

    def hold_attempt(self, host: str, now_ms: int) -> int:
        """For how long to hold a new attempt, in ms; raises if too many wait for their turn."""
        next_ms = max(self._next_ms.pop(host, 0), now_ms)
        count = self._hosts.get(host, now_ms)
        if not count:
            return 0
        is_refused = next_ms > now_ms + QUEUE_MS_MAX
        if len(self._next_ms) >= BACKOFF_ENTRIES_MAX:
            del self._next_ms[next(iter(self._next_ms))]
        self._next_ms[host] = next_ms if is_refused else next_ms + ATTEMPT_INTERVAL_MS
        if is_refused:
            raise AuthenticationError("too many logins of this address have failed")
        return max(min(self._after(count - 1), HOLD_MS_MAX), next_ms - now_ms)

    def hold_user(self, user: str, now_ms: int) -> int:
        """For how long to hold the response to an attempt for a user, in ms."""
        count = self._users.get(user, now_ms)
        return min(self._after(count - 1), HOLD_MS_MAX) if count else 0

    def _after(self, count: int) -> int:
        return min(self._delay_ms << min(count, 20), self._delay_ms_max)


class SaslSessions:
    """What the SASL sessions of a broker share."""

    def __init__(
        self,
        mechanisms: "Mechanisms",
        settings: Sasl,
        audit: AuditLog,
        clock: Callable[[], int],
        throttled_ms: Callable[[Principal], int] = lambda _principal: 0,
    ) -> None:
        """`throttled_ms` returns for how long to mute a client that has just authenticated."""
        self.mechanisms = mechanisms
        self.audit = audit
        self.clock = clock
        self.throttled_ms = throttled_ms
        self.receive_bytes_max = settings.receive_bytes_max
        self.session_ms_max = settings.max_reauth_ms
        self.backoff = LoginBackoff(
            settings.failed_authentication_delay_ms, settings.failed_authentication_delay_ms_max
        )

    def open(self, listener: str) -> "SaslSession":
        return SaslSession(self, self.mechanisms.offered(listener))


class SaslSession:
    """The authentication state of one connection."""

    __slots__ = (
        "_exchange",
        "_mechanism",
        "_sessions",
        "delay_ms",
        "enabled_mechanisms",
        "expects_raw_token",
        "expires_ms",
        "hold_ms",
        "principal",
    )

    def __init__(self, sessions: SaslSessions, enabled_mechanisms: tuple[str, ...]) -> None:
        self._sessions = sessions
        self.enabled_mechanisms = enabled_mechanisms
        self._mechanism = ""
        self._exchange: SaslServer | None = None
        self.delay_ms: int | None = None
        """For how long to delay the response to the failed attempt, in ms."""
        self.hold_ms = 0
        """For how long to hold the response to the last handshake or token, in ms."""
        self.expects_raw_token = False
        """True if the next frame is a token without a request header."""
        self.principal: Principal | None = None
        self.expires_ms: int | None = None

    @property
    def receive_bytes_max(self) -> int:
        """The largest frame of a client that has not authenticated."""
        return self._sessions.receive_bytes_max

    def allows(self, api_key: int) -> bool:
        """Whether requests of this API may be served now."""
        if api_key in UNAUTHENTICATED_APIS:
            return True
        if self.principal is None:
            return False
        return self.expires_ms is None or self._sessions.clock() < self.expires_ms

    def handshake(self, client: "ClientInfo", mechanism: str, version: int) -> None:
        """Begin an exchange by a mechanism."""
        if self._exchange is not None:
            raise IllegalSaslStateError("an authentication is already in progress")
        if mechanism not in self.enabled_mechanisms:
            self._sessions.audit.mechanism_not_enabled(client, mechanism)
            raise UnsupportedMechanismError(f"SASL mechanism {mechanism} is not enabled")
        if self.principal is not None and mechanism != self._mechanism:
            raise IllegalSaslStateError("reauthentication must use the same SASL mechanism")
        self.hold_ms = 0
        if self.principal is None:
            try:
                self.hold_ms = self._sessions.backoff.hold_attempt(
                    client.host, self._sessions.clock()
                )
            except AuthenticationError:
                client.is_closing = True
                raise
        self._mechanism = mechanism
        self._exchange = self._sessions.mechanisms.create_server(mechanism)
        self.expects_raw_token = version == RAW_TOKENS_VERSION

    def authenticate(self, client: "ClientInfo", token: bytes) -> SaslResult:
        """Process the next token; after an `AuthenticationError` the connection is closed."""
        if self._exchange is None:
            raise IllegalSaslStateError("SaslHandshake must precede SaslAuthenticate")
        try:
            step = self._exchange.evaluate_response(token)
            self.hold_ms = 0
            if step.failure:
                self._record_failure(client, self._exchange, step.failure)
            if step.principal is None:
                return SaslResult(step.token)
            self._check_same_principal(step.principal)
            self.hold_ms = self._sessions.backoff.hold_user(
                self._exchange.claimed_user, self._sessions.clock()
            )
        except AuthenticationError as error:
            self._record_failure(client, self._exchange, str(error))
            self._exchange = None
            self.principal = None
            client.is_closing = True
            raise
        self._exchange = None
        self.expects_raw_token = False
        if self.principal is None:
            client.throttled_ms = self._sessions.throttled_ms(step.principal)
        self.principal = client.principal = step.principal
        lifetime_ms = self._start_session(step.principal)
        self._sessions.audit.logged_in(client, self._mechanism)
        return SaslResult(step.token, lifetime_ms)

    def held(self, response: Response) -> Response | Awaitable[Response]:
        """The response to the last handshake or token, after `hold_ms`; later requests wait."""
        return asyncio.sleep(self.hold_ms / 1000, response) if self.hold_ms else response

    def _record_failure(self, client: "ClientInfo", exchange: SaslServer, reason: str) -> None:
        """Log a failure once per attempt: the client may disconnect before the last token."""
        if self.delay_ms is None:
            self._sessions.audit.login_failed(
                client, self._mechanism, exchange.claimed_user, reason
            )
            self.delay_ms = self._sessions.backoff.failed(
                client.host, exchange.claimed_user, self._sessions.clock()
            )

    def _start_session(self, principal: Principal) -> int:
        """Set when the session expires; returns its lifetime in ms, 0 if it does not expire."""
        now_ms = self._sessions.clock()
        ends = [now_ms + self._sessions.session_ms_max] if self._sessions.session_ms_max else []
        if principal.expires_ms is not None:
            ends.append(principal.expires_ms)
        self.expires_ms = min(ends, default=None)
        return max(1, self.expires_ms - now_ms) if self.expires_ms is not None else 0

    def _check_same_principal(self, principal: Principal) -> None:
        if self.principal is not None and principal.full_name != self.principal.full_name:
            raise AuthenticationError("reauthentication must use the same principal")
