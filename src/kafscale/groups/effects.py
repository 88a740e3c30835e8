"""Effects: what a group asks its caller to do after an event. Groups have no other output.

Invariants: the caller executes effects in order. `Save` writes the group's record as it is after
the event; a reply that `is_durable` is sent only after everything saved up to it is in the store.
So no member learns of an assignment that a crash could undo. The response of a rejected request is
a `KafscaleError`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.model import Partitions

# --- responses to members -----------------------------------------------------------------------


class JoinedMember(msgspec.Struct, frozen=True, gc=False):
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """A member is in the generation that has just started."""

    generation: int
    protocol_type: str
    protocol: str
    leader: str
    member_id: str
    members: tuple[JoinedMember, ...] = ()
    """All members for the leader, none for the others."""
    skip_assignment: bool = False


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """The leader's assignment for a member: its bytes, unchanged."""

    protocol_type: str
    protocol: str
    assignment: bytes


class Alive(msgspec.Struct, frozen=True):
    """A heartbeat was accepted, and no rebalance is pending."""


class Left(msgspec.Struct, frozen=True):
    """The members that have left, with an error for each that could not."""

    members: Sequence[tuple[str, str | None, KafscaleError | None]]
    """Member id and instance id as in the request."""


class Reconciled(msgspec.Struct, frozen=True, kw_only=True):
    """ConsumerGroupHeartbeat: the member's current epoch and assignment."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Partitions | None = None
    """None if it is unchanged since the last response."""


Response = Joined | Synced | Alive | Left | Reconciled

# --- effects ------------------------------------------------------------------------------------

NO_REPLY_TOKEN: Final = 0


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Send the response of the request with this token; the client may be gone."""

    reply_token: int
    response: Response | KafscaleError
    is_durable: bool = False


class Save(msgspec.Struct, frozen=True, gc=False):
    """Write the group's record; of several pending saves only the newest is written."""


class Rebalanced(msgspec.Struct, frozen=True, gc=False):
    """A new generation has started: for the log and the metrics."""

    generation: int
    member_count: int
    reason: str


Effect = Reply | Save | Rebalanced
