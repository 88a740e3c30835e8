"""The audit log: logins, failed logins, denied requests, and changes, each with its principal.

Invariants: every line has the principal, the client's address and what happened; no line holds a
secret. A flood of denials does not become a flood of lines: the same denial of the same client is
logged once per second; the others are counted by address and user, which the second ends with. The
logger is named `kafscale.audit`, so that its lines can be routed separately.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import SecurityCounters

if TYPE_CHECKING:
    from kafscale.broker.requests.context import ClientInfo, RequestContext

logger = get_logger("kafscale.audit")

DENIALS_PER_SECOND_MAX: Final = 100
"""How many different denials are logged per second; further ones are counted."""
COUNTS_MAX: Final = 100
"""For how many addresses and users denials are counted separately in a second."""
OTHERS: Final = ("others", "others")
"""The address and user of the denials that are not counted separately."""
NAME_LENGTH_MAX: Final = 256
"""How much is logged of a name that an unauthenticated client sends."""


class AuditLog:
    """Writes the audit log."""

    def __init__(
        self,
        counters: SecurityCounters,
        clock: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        self._counters = counters
        self._clock = clock
        self._call_later = call_later or asyncio.get_running_loop().call_later
        self._second = 0
        self._denials: set[tuple[str, ...]] = set()  # Those logged in this second.
        self._suppressed: Counter[tuple[str, str]] = Counter()

    def denied(
        self,
        context: "RequestContext",
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> None:
        """Log that a client is not authorized to perform an operation."""
        self._counters.denied += 1
        client = context.client
        denial = (
            client.principal.full_name,
            client.host,
            context.api.name,
            operation.name,
            resource_type.name,
            name,
        )
        if self._is_repeated(client.host, client.principal.full_name, denial):
            return
        logger.warning(
            "access denied",
            **_client_fields(client),
            api=context.api.name,
            client_id=context.client_id,
            operation=operation.name,
            resource_type=resource_type.name,
            resource=name,
        )

    def changed(self, context: "RequestContext", change: str, **facts: Any) -> None:
        """Log that a client has changed a topic, an ACL, a user, a quota or a config."""
        client = _client_fields(context.client)
        logger.info("changed", **client, api=context.api.name, change=change, **facts)

    def logged_in(self, client: "ClientInfo", mechanism: str) -> None:
        self._counters.logged_in(mechanism, succeeded=True)
        logger.info("logged in", **_client_fields(client), mechanism=mechanism)

    def login_failed(self, client: "ClientInfo", mechanism: str, claimed: str, reason: str) -> None:
        """Log a failed authentication; `claimed` is the name that the client sent."""
        claimed = claimed[:NAME_LENGTH_MAX]
        self._counters.logged_in(mechanism, succeeded=False)
        if not self._is_repeated(client.host, claimed, (client.host, mechanism, claimed, reason)):
            logger.warning(
                "login failed",
                **_client_fields(client),
                mechanism=mechanism,
                claimed=claimed,
                reason=reason,
            )

    def mechanism_not_enabled(self, client: "ClientInfo", mechanism: str) -> None:
        """Log that a client requested a SASL mechanism that the listener does not enable."""
        mechanism = mechanism[:NAME_LENGTH_MAX]
        if not self._is_repeated(client.host, "", (client.host, mechanism)):
            logger.warning("mechanism not enabled", **_client_fields(client), mechanism=mechanism)

    def _is_repeated(self, host: str, user: str, denial: tuple[str, ...]) -> bool:
        """Whether to suppress a denial in this second, and count it."""
        second = self._clock() // 1000
        if second != self._second:
            self._second = second
            self._denials.clear()
        if denial not in self._denials and len(self._denials) < DENIALS_PER_SECOND_MAX:
            self._denials.add(denial)
            return False
        if not self._suppressed:
            self._call_later(1.0, self._log_suppressed)
        counted = (host, user)
        if counted not in self._suppressed and len(self._suppressed) >= COUNTS_MAX:
            counted = OTHERS
        self._suppressed[counted] += 1
        return True

    def _log_suppressed(self) -> None:
        suppressed, self._suppressed = self._suppressed, Counter()
        for (address, user), count in suppressed.items():
            logger.warning("repeated denials suppressed", address=address, user=user, count=count)


def _client_fields(client: "ClientInfo") -> dict[str, str]:
    return {
        "principal": client.principal.full_name,
        "client": str(client),
        "listener": client.listener.name,
    }
