"""The groups that this broker answers for, by name: found, made, turned into the other kind.

The laws: a name leads to one group at a time, of one kind. A group without members becomes whatever
the next one who joins speaks; one with members becomes a consumer group when the first member of
that protocol joins, if it may, and a classic one when the last of them has left. Its offsets stay.
"""

from collections.abc import Iterator, Mapping

from kafscale.broker.group_coordinator.group_runtime import HostedGroup
from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.broker.group_coordinator.pending_replies import Tickets
from kafscale.broker.group_coordinator.tenures import Tenures
from kafscale.errors import (
    GroupNotFoundError,
    KafscaleError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from kafscale.groups.classic.group import ClassicGroup
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer.group import ConsumerGroup
from kafscale.groups.effects import Reply
from kafscale.groups.events import ConsumerHeartbeat, Join
from kafscale.groups.group import Group
from kafscale.groups.model import GroupRecord, Kind, TopicInfo
from kafscale.metadata.schema.group_codec import encode_group
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import Counters

log = get_logger(__name__)

JOINING_EPOCH = 0


class GroupDirectory:
    """All groups of this broker."""

    def __init__(
        self,
        settings: GroupSettings,
        tenures: Tenures,
        tickets: Tickets,
        traffic: Counters,
        *,
        topic_names: Mapping[bytes, str],
        clock: GroupClock,
    ) -> None:
        self._settings = settings
        self._tenures = tenures
        self._tickets = tickets
        self._traffic = traffic
        self._topic_names = topic_names
        self._clock = clock
        self._groups: dict[str, HostedGroup] = {}
        self.topics: Mapping[str, TopicInfo] = {}
        """What consumer groups may be given; the coordinator keeps it current."""

    def __iter__(self) -> Iterator[HostedGroup]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> HostedGroup | None:
        return self._groups.get(group_id)

    # --- coming and going -----------------------------------------------------------------------

    def restore(self, record: GroupRecord) -> HostedGroup:
        """Bring back a group from its record."""
        hosted = self._host(self._restored(record))
        hosted.is_saved = True
        return hosted

    def classic(self, group_id: str) -> HostedGroup:
        """The group of this name; a new one without members, if there is none."""
        found = self._groups.get(group_id)
        return found or self._host(ClassicGroup(group_id, self._settings, self._clock()))

    def remove(self, hosted: HostedGroup) -> None:
        """Forget a group, here and in the store."""
        hosted.delete()
        self.forget(hosted)

    def forget(self, hosted: HostedGroup) -> None:
        """Forget a group here; the store does not."""
        del self._groups[hosted.group.group_id]
        self._traffic.forget_group(hosted.group.group_id)

    def drop_void(self, hosted: HostedGroup) -> None:
        """Forget a group that nothing came of."""
        if hosted.is_void and self._groups.get(hosted.group.group_id) is hosted:
            hosted.close()
            self.forget(hosted)

    # --- which kind -----------------------------------------------------------------------------

    def to_join(self, group_id: str, event: Join) -> HostedGroup:
        """The group that a classic member may join."""
        found = self._groups.get(group_id)
        if found is None:
            if event.member_id:
                raise UnknownMemberError(f"Group {group_id} not found.")
            return self.classic(group_id)
        if found.group.kind is Kind.CONSUMER and not found.group.member_count:
            found.become(ClassicGroup(group_id, self._settings, self._clock()))
        return found

    def to_consume(self, group_id: str, event: ConsumerHeartbeat) -> HostedGroup:
        """The group that a member of the consumer protocol may join, or is in."""
        found = self._groups.get(group_id)
        now_ms = self._clock()
        if found is not None and found.group.kind is Kind.CONSUMER:
            return found
        if event.member_epoch != JOINING_EPOCH:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        if found is None:
            return self._host(ConsumerGroup(group_id, self._settings, self.topics, now_ms))
        if found.group.member_count:
            self._upgrade(found, event)
        else:
            self._dismiss(found)
            found.become(ConsumerGroup(group_id, self._settings, self.topics, now_ms))
        return found

    def settle_kind(self, hosted: HostedGroup) -> None:
        """Turn a consumer group back into a classic one, where only classic members are left."""
        group = hosted.group
        if isinstance(group, ConsumerGroup) and group.wants_downgrade:
            self._dismiss(hosted)
            hosted.become(self._restored(group.downgraded()))
            log.info("group downgraded", group_id=group.group_id)

    def _upgrade(self, hosted: HostedGroup, event: ConsumerHeartbeat) -> None:
        record = hosted.group.record()
        if not self._settings.upgrades:
            raise GroupNotFoundError(f"group {record.group_id!r} has members of another protocol")
        now_ms = self._clock()
        # Whoever would be refused must not disturb the members: it is tried on a copy first.
        trial = ConsumerGroup.upgraded(record, self._settings, self.topics, now_ms)
        for effect in trial.handle(event, now_ms):
            if isinstance(effect, Reply) and isinstance(effect.answer, KafscaleError):
                raise effect.answer
        upgraded = ConsumerGroup.upgraded(record, self._settings, self.topics, now_ms)
        self._dismiss(hosted)
        hosted.become(upgraded)
        log.info("group upgraded", group_id=record.group_id, member_count=upgraded.member_count)

    def _dismiss(self, hosted: HostedGroup) -> None:
        """Have those who wait ask again: the group they wait for will not be there any more."""
        error = RebalanceInProgressError("the group changes its protocol; join again")
        hosted.carry_out(hosted.group.dismiss(error, self._clock()))

    def _restored(self, record: GroupRecord) -> Group:
        now_ms = self._clock()
        if record.kind is Kind.CONSUMER:
            return ConsumerGroup.restored(record, self._settings, self.topics, now_ms)
        return ClassicGroup.restored(record, self._settings, now_ms)

    def _host(self, group: Group) -> HostedGroup:
        tenure = self._tenures.of(group.group_id)
        assert tenure is not None, "only groups of our shards are hosted"
        hosted = HostedGroup(
            group,
            tenure,
            self._tickets,
            self._traffic.group(group.group_id),
            encode=lambda record: encode_group(record, self._topic_names),
            clock=self._clock,
        )
        self._groups[group.group_id] = hosted
        return hosted
