"""`Group`: what both kinds of group have in common, as the coordinator sees them."""

from typing import Protocol

from kafscale.errors import KafscaleError
from kafscale.groups.effects import Effect
from kafscale.groups.events import Event
from kafscale.groups.model import GroupRecord, Kind


class Group(Protocol):
    """A group that lives; whatever happens to it comes through `handle`."""

    @property
    def group_id(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def state(self) -> str:
        """Spelled as Kafka's tools show it."""

    @property
    def member_count(self) -> int: ...

    @property
    def deadline_ms(self) -> int | None:
        """When the next `Tick` is due; one that comes too early does no harm."""

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Let an event happen, at once and as a whole."""

    def dismiss(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Answer everybody who waits with this error; nothing else changes."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Raise unless who says so may commit offsets; a member that may has shown itself alive."""

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise unless who says so may read the committed offsets."""

    def subscribes_to(self, topic: str) -> bool:
        """Whether some member reads the topic, as far as that is known."""

    def record(self) -> GroupRecord: ...
