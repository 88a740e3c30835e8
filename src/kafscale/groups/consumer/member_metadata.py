"""`MemberMetadata`: a member's identity and subscription, as the member sent them.

Members of the consumer protocol send only what has changed. Classic members send everything with
every join, with their subscription in the bytes for the group leader.
"""

from collections.abc import Callable

import msgspec

from kafscale.errors import InconsistentProtocolError, ProtocolError
from kafscale.groups.consumer_protocol import Subscription, decode_subscription
from kafscale.groups.events import ConsumerHeartbeat, Join

SubscribedTopics = tuple[frozenset[str], str]
"""The topics that a member subscribes to: names, and a regex that may be ''."""


class MemberMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What a member has sent about itself."""

    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    names: frozenset[str] = frozenset()
    regex: str = ""
    visible_topics: frozenset[str] | None = None
    """The topics that the regex matches, if the member may not see all of them."""
    server_assignor: str | None = None
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    protocols: tuple[tuple[str, bytes], ...] = ()
    """The protocols of a classic member, most preferred first; empty for other members."""

    @property
    def subscription(self) -> SubscribedTopics:
        if self.visible_topics is not None:
            return self.names | self.visible_topics, ""
        return self.names, self.regex

    @property
    def is_classic(self) -> bool:
        return bool(self.protocols)

    @property
    def protocol(self) -> str:
        """The protocol for a classic member: its favourite, as all are equivalent here."""
        return self.protocols[0][0]

    def after_heartbeat(
        self, event: ConsumerHeartbeat, session_timeout_ms: int
    ) -> "MemberMetadata":
        """The metadata after a heartbeat, which makes it a member of the consumer protocol."""
        names = event.subscribed_names
        regex = event.subscribed_regex
        timeout_ms = event.rebalance_timeout_ms
        return MemberMetadata(
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

    def with_visible_topics(
        self, matching: frozenset[str], can_describe: Callable[[str], bool]
    ) -> "MemberMetadata":
        """The metadata, with the topics that match the regex and that the member may see."""
        visible = frozenset(filter(can_describe, matching))
        return (
            self if visible == matching else msgspec.structs.replace(self, visible_topics=visible)
        )

    def after_join(self, event: Join, subscription: Subscription) -> "MemberMetadata":
        """The metadata after a JoinGroup, which makes it a classic member."""
        return MemberMetadata(
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
    """The subscription and owned partitions of a classic member."""
    try:
        return decode_subscription(event.protocols[0][1])
    except ProtocolError as error:
        raise InconsistentProtocolError(f"invalid subscription of the member: {error}") from error
