"""The audit log: who was let in, who was not, what was denied, and what was changed by whom.

The laws: every line says who, from where and what; no line holds a secret. A flood of denials does
not become a flood of lines: the same denial of the same client is told once a second, with how
often it happened. Lines go where the log goes, under the name `kafscale.audit`, so that they can be
kept apart.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import SecurityCounters

if TYPE_CHECKING:
    from kafscale.broker.requests.context import ClientInfo, RequestContext

log = get_logger("kafscale.audit")

KINDS_COUNT_MAX: Final = 100
"""How many different denials are told within a second; further ones are counted."""
NAME_LENGTH_MAX: Final = 256
"""How much of what a stranger calls itself is told."""


class Audit:
    """Writes what has to be known afterwards."""

    def __init__(self, traffic: SecurityCounters, clock: Callable[[], int]) -> None:
        self._traffic = traffic
        self._clock = clock
        self._second = 0
        self._denials: set[tuple[str, ...]] = set()  # Those of this second,
        self._left_out = 0  # and how many more there were.

    def denied(
        self,
        context: "RequestContext",
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> None:
        """Tell that somebody may not do something."""
        self._traffic.denied += 1
        client = context.client
        kind = (
            client.identity.full_name,
            client.host,
            context.api.name,
            operation.name,
            resource_type.name,
            name,
        )
        if self._is_repeated(kind):
            return
        log.warning(
            "access denied",
            **_who(client),
            api=context.api.name,
            client_id=context.client_id,
            operation=operation.name,
            resource_type=resource_type.name,
            resource=name,
        )

    def changed(self, context: "RequestContext", change: str, **facts: Any) -> None:
        """Tell that somebody has changed something: a topic, a rule, a user, a quota."""
        log.info("changed", **_who(context.client), api=context.api.name, change=change, **facts)

    def logged_in(self, client: "ClientInfo", mechanism: str) -> None:
        self._traffic.logged_in(mechanism, succeeded=True)
        log.info("logged in", **_who(client), mechanism=mechanism)

    def login_failed(self, client: "ClientInfo", mechanism: str, claimed: str, reason: str) -> None:
        """Tell that somebody could not show to be who they claim to be."""
        claimed = claimed[:NAME_LENGTH_MAX]
        self._traffic.logged_in(mechanism, succeeded=False)
        if not self._is_repeated((client.host, mechanism, claimed, reason)):
            log.warning(
                "login failed", **_who(client), mechanism=mechanism, claimed=claimed, reason=reason
            )

    def not_offered(self, client: "ClientInfo", mechanism: str) -> None:
        """Tell that somebody wants to log in by a mechanism that is not offered."""
        mechanism = mechanism[:NAME_LENGTH_MAX]
        if not self._is_repeated((client.host, mechanism)):
            log.warning("mechanism not offered", **_who(client), mechanism=mechanism)

    def _is_repeated(self, kind: tuple[str, ...]) -> bool:
        """Whether this second has had one like it; the next second tells how many there were."""
        second = self._clock() // 1000
        if second != self._second:
            if self._left_out:
                log.warning("repeated denials left out", count=self._left_out)
            self._second = second
            self._left_out = 0
            self._denials.clear()
        if kind not in self._denials and len(self._denials) < KINDS_COUNT_MAX:
            self._denials.add(kind)
            return False
        self._left_out += 1
        return True


def _who(client: "ClientInfo") -> dict[str, str]:
    return {
        "principal": client.identity.full_name,
        "client": str(client),
        "listener": client.listener.name,
    }
