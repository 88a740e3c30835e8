"""`Group`: the interface of both group types, as the coordinator uses it, and their settings."""

from typing import Protocol

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.effects import Effect
from kafscale.groups.events import Event
from kafscale.groups.model import GroupRecord, GroupType


class GroupSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `group.*` settings; the defaults are Kafka's."""

    initial_rebalance_delay_ms: int = 3_000
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    size_max: int = 2**31 - 1

    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_size_max: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    """The first one is used if members do not ask for another."""
    upgrades: bool = True
    """Whether a classic group may become a consumer group while it has members."""
    downgrades: bool = True
    """Whether a consumer group becomes a classic one when only classic members are left."""


class Group(Protocol):
    """A group; all events go through `handle`."""

    @property
    def group_id(self) -> str: ...

    @property
    def group_type(self) -> GroupType: ...

    @property
    def state(self) -> str:
        """As in Kafka's tools."""

    @property
    def member_count(self) -> int: ...

    @property
    def deadline_ms(self) -> int | None:
        """When the next `Tick` is due; an early tick has no effect."""

    def configure(self, settings: GroupSettings) -> None:
        """Change the settings; requests that come later are handled by them."""

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event atomically."""

    def abort(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Fail all pending requests with this error."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Raise unless this member may commit offsets; a valid commit counts as a heartbeat."""

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        """Raise unless this member may commit offsets in a transaction."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise unless this member may read the committed offsets."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member is subscribed to the topic, as far as is known."""

    def record(self) -> GroupRecord: ...
