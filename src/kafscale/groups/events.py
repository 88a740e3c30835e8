"""What can happen to a group: requests of its members, topics that change, and time that passes.

A `ticket` names who waits for the answer; it comes back in the `Reply`. Everything random, such as
the id of a new member, is made by the shell and handed in.
"""

from collections.abc import Callable, Mapping

import msgspec

from kafscale.groups.model import Partitions, TopicInfo


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """JoinGroup: take part in the next generation of a classic group."""

    ticket: int
    member_id: str
    """Empty for a member that has none yet."""
    fresh_id: str
    """The id that a member without one may be given."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """The session's where the client gives none."""
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """Name and metadata, most preferred first."""
    must_know_id: bool = False
    """A new member is first told its id, and joins with it (v4 and later)."""
    can_skip_assignment: bool = False
    """The client understands that an assignment may stay as it is (v9 and later)."""
    reason: str = ""


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """SyncGroup: hand in the assignment, as the leader, or ask for one's own."""

    ticket: int
    member_id: str
    instance_id: str | None = None
    generation: int
    protocol_type: str | None = None
    """None where the client does not say (before v5); so for the protocol."""
    protocol: str | None = None
    assignments: Mapping[str, bytes]


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """Heartbeat: a member of a classic group is alive."""

    ticket: int
    member_id: str
    instance_id: str | None = None
    generation: int


class Leaver(msgspec.Struct, frozen=True, kw_only=True):
    """One member that is to leave; a static one may go by its instance alone."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """LeaveGroup: members go, or are sent away by an administrator."""

    ticket: int
    members: tuple[Leaver, ...]


class ConsumerHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat: None, or -1, is what has not changed since the last one."""

    ticket: int
    member_id: str
    """Never empty: where the client has none (v0), the shell has made one."""
    member_epoch: int
    """0 to join, -1 to leave, -2 when a static member leaves for a while."""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_names: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    """Empty to subscribe to names alone again."""
    sees: Callable[[str], bool] | None = None
    """Which topics the member may know of by a regular expression; None where it may know all."""
    server_assignor: str | None = None
    owned: Partitions | None = None


class TopicsChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Which topics there are now, by name."""

    topics: Mapping[str, TopicInfo]


class Tick(msgspec.Struct, frozen=True):
    """Time has passed: whatever is due by now happens."""


Event = Join | Sync | Heartbeat | Leave | ConsumerHeartbeat | TopicsChanged | Tick
