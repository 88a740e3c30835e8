"""A group as it is kept in the metadata store, and as it is described to those who ask.

Data only, of either kind of group. The law: a group that is restored from its record goes on where
it was, but for those who waited for an answer, and for its timers, which begin again.
"""

import enum
from collections.abc import Mapping

import msgspec

TopicPartition = tuple[str, int]
"""A topic's name and a partition's index."""

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id; no topic has an empty set."""


class TopicInfo(msgspec.Struct, frozen=True, gc=False):
    """What a group has to know of a topic."""

    name: str
    id: bytes
    partition_count: int


class Kind(enum.StrEnum):
    """Which protocol a group speaks, spelled as ListGroups does."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A member. What only one kind of group has is empty in the other."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    heartbeat_ms: int = 0
    """When it was last heard of, as far as that was written down."""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0

    protocols: tuple[tuple[str, bytes], ...] = ()
    """Classic, and classic members of a consumer group: what it offers, most preferred first."""
    assignment: bytes = b""
    """Classic: the leader's bytes."""

    is_classic: bool = True
    """Whether it speaks the classic protocol; in a consumer group, while that is upgraded."""
    rack_id: str | None = None
    member_epoch: int = 0
    previous_member_epoch: int = 0
    subscribed_names: tuple[str, ...] = ()
    subscribed_regex: str = ""
    server_assignor: str | None = None
    assigned: Partitions = {}
    """Consumer: what it owns."""
    revoking: Partitions = {}
    """Consumer: what it owns and has been asked to give up."""
    target: Partitions = {}
    """Consumer: what it is to own in the end."""


class GroupRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A group with its members; its committed offsets are kept beside it, each on its own."""

    group_id: str
    kind: Kind = Kind.CLASSIC
    state: str
    """Spelled as Kafka's tools show it."""
    state_since_ms: int = 0
    protocol_type: str = ""
    protocol: str = ""
    """The protocol that was chosen; in a consumer group, the assignor."""
    leader: str = ""
    generation: int = 0
    """In a consumer group, its epoch."""
    assignment_epoch: int = 0
    """Consumer: the group epoch that the targets were made for."""
    members: Mapping[str, MemberRecord] = {}
