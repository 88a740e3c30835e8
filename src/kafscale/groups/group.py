"""`Group`: the interface of both group types, as the coordinator uses it."""

from typing import Protocol

from kafscale.errors import KafscaleError
from kafscale.groups.effects import Effect
from kafscale.groups.events import Event
from kafscale.groups.model import GroupRecord, GroupType


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

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event atomically."""

    def abort(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Fail all pending requests with this error."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Raise unless this member may commit offsets; a valid commit counts as a heartbeat."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise unless this member may read the committed offsets."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member is subscribed to the topic, as far as is known."""

    def record(self) -> GroupRecord: ...
