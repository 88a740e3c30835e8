"""A group as it is stored in the metadata store, and as it is described to clients.

Data only, for both group types. Invariant: a group that is restored from its record continues where
it was, except for pending requests, and for its timers, which start again.
"""

import enum
from collections.abc import Mapping

import msgspec

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic has an empty set."""


class TopicInfo(msgspec.Struct, frozen=True, gc=False):
    """What a group has to know of a topic."""

    name: str
    id: bytes
    partition_count: int


class GroupType(enum.StrEnum):
    """The group type, spelled as in ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A member; fields that only one group type has are empty in the other."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    heartbeat_ms: int = 0
    """The last heartbeat at the time of the write."""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0

    protocols: tuple[tuple[str, bytes], ...] = ()
    """Classic, and classic members of a consumer group: the offered protocols, most preferred
    first.
    """
    assignment: bytes = b""
    """Classic: the leader's bytes."""

    is_classic: bool = True
    """Whether it uses the classic protocol; possible in a consumer group during an upgrade."""
    rack_id: str | None = None
    member_epoch: int = 0
    previous_member_epoch: int = 0
    subscribed_names: tuple[str, ...] = ()
    subscribed_regex: str = ""
    server_assignor: str | None = None
    assigned: Partitions = {}
    """Consumer: the partitions it owns."""
    revoking: Partitions = {}
    """Consumer: the partitions it owns and has to revoke."""
    target: Partitions = {}
    """Consumer: its target assignment."""


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its members; each committed offset is stored separately."""

    group_id: str
    group_type: GroupType = GroupType.CLASSIC
    state: str
    """As in Kafka's tools."""
    state_since_ms: int = 0
    protocol_type: str = ""
    protocol: str = ""
    """The selected protocol; in a consumer group, the assignor."""
    leader: str = ""
    generation: int = 0
    """In a consumer group, the group epoch."""
    assignment_epoch: int = 0
    """Consumer: the group epoch of the target assignment."""
    members: Mapping[str, MemberRecord] = {}
