"""`Profile`: who a member is and what it wants, as it said itself.

Members of the new protocol say only what has changed; those of the classic one say everything with
every join, and what they want to read is in the bytes that were meant for their leader.
"""

from collections.abc import Callable

import msgspec

from kafscale.errors import InconsistentProtocolError, ProtocolError
from kafscale.groups.consumer_protocol import Subscription, decode_subscription
from kafscale.groups.events import ConsumerHeartbeat, Join

Wish = tuple[frozenset[str], str]
"""The topics that a member wants to read: their names, and a regular expression that may be ''."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a member has told of itself."""

    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    names: frozenset[str] = frozenset()
    regex: str = ""
    narrowed: frozenset[str] | None = None
    """What the expression comes to for a member that may not know of all topics that it matches."""
    server_assignor: str | None = None
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocols: tuple[tuple[str, bytes], ...] = ()
    """What a classic member offers, most preferred first; nobody else offers any."""

    @property
    def wish(self) -> Wish:
        if self.narrowed is not None:
            return self.names | self.narrowed, ""
        return self.names, self.regex

    @property
    def is_classic(self) -> bool:
        return bool(self.protocols)

    @property
    def protocol(self) -> str:
        """What a classic member is told to use: its favourite, as it makes no difference here."""
        return self.protocols[0][0]

    def told(self, event: ConsumerHeartbeat, session_timeout_ms: int) -> "Profile":
        """Its successor after a heartbeat; whoever sends one speaks the new protocol."""
        names = event.subscribed_names
        regex = event.subscribed_regex
        timeout_ms = event.rebalance_timeout_ms
        return Profile(
            instance_id=self.instance_id if event.instance_id is None else event.instance_id,
            client_id=event.client_id,
            client_host=event.client_host,
            rack_id=self.rack_id if event.rack_id is None else event.rack_id,
            names=self.names if names is None else frozenset(names),
            regex=self.regex if regex is None else regex,
            server_assignor=event.server_assignor or self.server_assignor,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        )

    def knowing(self, matching: frozenset[str], sees: Callable[[str], bool]) -> "Profile":
        """Its successor, where the expression matches these topics and the member sees some."""
        seen = frozenset(filter(sees, matching))
        return self if seen == matching else msgspec.structs.replace(self, narrowed=seen)

    def joined(self, event: Join, subscription: Subscription) -> "Profile":
        """Its successor after a join; whoever sends one speaks the classic protocol."""
        return Profile(
            instance_id=self.instance_id if event.instance_id is None else event.instance_id,
            client_id=event.client_id,
            client_host=event.client_host,
            rack_id=subscription.rack,
            names=frozenset(subscription.topics),
            server_assignor=self.server_assignor,
            session_timeout_ms=event.session_timeout_ms,
            rebalance_timeout_ms=event.rebalance_timeout_ms,
            protocols=event.protocols,
        )


def subscription_of(event: Join) -> Subscription:
    """What a classic member wants to read, and what it owns."""
    try:
        return decode_subscription(event.protocols[0][1])
    except ProtocolError as error:
        raise InconsistentProtocolError(f"the member's subscription: {error}") from error
