"""What members are told; an error is told as a `KafscaleError` instead."""

from collections.abc import Sequence

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.model import Partitions


class JoinedMember(msgspec.Struct, frozen=True, gc=False):
    """A member as the leader is shown it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """A member is in the generation that has just begun."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()
    """All of them for the leader, none for the others."""
    skip_assignment: bool = False


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What the leader has assigned to a member: its bytes, untouched."""

    protocol_type: str
    protocol: str
    assignment: bytes


class Alive(msgspec.Struct, frozen=True):
    """A heartbeat was taken, and there is nothing new."""


class Left(msgspec.Struct, frozen=True):
    """Which members are gone now; an error beside each that could not go."""

    members: Sequence[tuple[str, str | None, KafscaleError | None]]
    """Member id and instance id as they were asked for."""


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat: where a member stands now."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Partitions | None = None
    """None where it is as it was told before."""


Answer = Joined | Synced | Alive | Left | Reconciled
