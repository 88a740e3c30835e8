"""`ConsumerGroup`: a group of the consumer protocol, as the coordinator uses it.

It dispatches events: `group_state` has the members and epochs, `heartbeat` and `classic_members`
the two protocols of its members.
"""

from collections.abc import Mapping
from typing import Final

from kafscale.errors import (
    IllegalGenerationError,
    KafscaleError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from kafscale.groups.consumer import classic_members, migration
from kafscale.groups.consumer.group_state import GroupState, State
from kafscale.groups.consumer.heartbeat import consumer_heartbeat
from kafscale.groups.consumer.member import NEVER_MS, Member, restored
from kafscale.groups.consumer.subscriptions import TopicSubscriptions, is_subscribed
from kafscale.groups.consumer_protocol import NO_GENERATION, PROTOCOL_TYPE
from kafscale.groups.effects import Effect, Reply, Save
from kafscale.groups.events import (
    ConsumerHeartbeat,
    Event,
    Heartbeat,
    Join,
    Leave,
    Sync,
    Tick,
    TopicsChanged,
)
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord, GroupType, TopicInfo

Topics = Mapping[str, TopicInfo]


class ConsumerGroup:
    """A group whose members get their partitions from the coordinator."""

    group_type: Final = GroupType.CONSUMER

    def __init__(self, group_id: str, settings: GroupSettings, topics: Topics, now_ms: int) -> None:
        self.group_id = group_id
        self._group_state = GroupState(group_id, settings, TopicSubscriptions(topics))
        self._state = State.EMPTY
        self._state_since_ms = now_ms
        self.needs_downgrade = False
        """Whether the last member of the consumer protocol has left, and classic ones remain."""

    @classmethod
    def restored(
        cls, record: GroupRecord, settings: GroupSettings, topics: Topics, now_ms: int
    ) -> "ConsumerGroup":
        """The recorded group; starts a new epoch if topics have changed since."""
        assert record.group_type is GroupType.CONSUMER
        group = cls(record.group_id, settings, topics, now_ms)
        state = group._group_state
        state.epoch = record.generation
        state.assignment_epoch = record.assignment_epoch
        for member in record.members.values():
            state.add(restored(member, settings.consumer_session_timeout_ms, now_ms))
        if state.is_outdated():
            state.epoch += 1
        group._state = state.state
        group._state_since_ms = record.state_since_ms
        group.needs_downgrade = migration.is_downgrade_due(state)
        return group

    @classmethod
    def upgraded(
        cls, record: GroupRecord, settings: GroupSettings, topics: Topics, now_ms: int
    ) -> "ConsumerGroup":
        """A classic group whose members continue, so that a consumer-protocol member can join."""
        group = cls(record.group_id, settings, topics, now_ms)
        migration.upgrade(group._group_state, record, now_ms)
        group._state = group._group_state.state
        return group

    @property
    def state(self) -> str:
        return self._state.value

    @property
    def member_count(self) -> int:
        return len(self._group_state.members)

    @property
    def deadline_ms(self) -> int | None:
        deadline_ms = self._group_state.deadline_ms
        return None if deadline_ms == NEVER_MS else deadline_ms

    def configure(self, settings: GroupSettings) -> None:
        """Change the settings; members learn of them with their next heartbeat."""
        self._group_state.settings = settings

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle an event; a rejected request changes nothing but deadlines."""
        if isinstance(event, TopicsChanged):
            effects = self._topics_changed(event)
        elif isinstance(event, Tick):
            effects = self._tick(now_ms)
        else:
            try:
                effects = self._request(event, now_ms)
            except KafscaleError as error:
                return [Reply(event.reply_token, error)]
        if any(isinstance(effect, Save) for effect in effects):
            self._update_state(now_ms)
        return effects

    def abort(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Nothing to do: every request is answered at once."""
        del error, now_ms
        return []

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        del instance_id  # The member id is enough, as in Kafka.
        if generation < 0 and not self._group_state.members:
            return
        self._member_in_epoch(member_id, generation).heartbeat_ms = now_ms

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        if generation < 0 and not self._group_state.members:
            return
        # Older clients do not say of which member the commit is.
        if generation == NO_GENERATION and not member_id and instance_id is None:
            return
        self._member_in_epoch(member_id, generation)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            self._member_in_epoch(member_id or "", member_epoch)

    def subscribes_to(self, topic: str) -> bool:
        subscriptions = {
            member.metadata.subscription for member in self._group_state.members.values()
        }
        return any(is_subscribed(subscription, topic) for subscription in subscriptions)

    def record(self) -> GroupRecord:
        group = self._group_state
        return GroupRecord(
            group_id=self.group_id,
            group_type=self.group_type,
            state=self._state.value,
            state_since_ms=self._state_since_ms,
            protocol_type=PROTOCOL_TYPE,
            protocol=group.assignor,
            generation=group.epoch,
            assignment_epoch=group.assignment_epoch,
            members={member.member_id: member.record() for member in group.members.values()},
        )

    def downgraded(self) -> GroupRecord:
        """A classic group of the remaining members, which they have to rejoin."""
        return migration.downgraded(self.record(), self._group_state.subscriptions)

    def _request(
        self, event: ConsumerHeartbeat | Join | Sync | Heartbeat | Leave, now_ms: int
    ) -> list[Effect]:
        match event:
            case ConsumerHeartbeat():
                return consumer_heartbeat(self._group_state, event, now_ms)
            case Heartbeat():
                return classic_members.heartbeat(self._group_state, event, now_ms)
            case Join():
                return classic_members.join(self._group_state, event, now_ms)
            case Sync():
                return classic_members.sync(self._group_state, event, now_ms)
            case Leave():
                return classic_members.leave(self._group_state, event)

    def _topics_changed(self, event: TopicsChanged) -> list[Effect]:
        group = self._group_state
        subscriptions = {member.metadata.subscription for member in group.members.values()}
        before = group.subscriptions.partition_counts(subscriptions)
        group.subscriptions = TopicSubscriptions(event.topics)
        if group.subscriptions.partition_counts(subscriptions) == before:
            return []
        return [group.bump_epoch("topics changed"), Save()]

    def _tick(self, now_ms: int) -> list[Effect]:
        if now_ms < self._group_state.deadline_ms:
            return []
        expired = self._group_state.expired(now_ms)
        return self._group_state.remove(expired, expired[0].missed(now_ms) or "") if expired else []

    def _member_in_epoch(self, member_id: str, epoch: int) -> Member:
        member = self._group_state.members.get(member_id)
        if member is None:
            raise UnknownMemberError(f"no member has id {member_id}")
        if epoch != member.assignment.epoch:
            after_heartbeat = f"the member is in epoch {member.assignment.epoch}, not {epoch}"
            if member.metadata.is_classic:
                raise IllegalGenerationError(after_heartbeat)
            raise StaleMemberEpochError(after_heartbeat)
        return member

    def _update_state(self, now_ms: int) -> None:
        """Record the state of the group after a change."""
        state = self._group_state.state
        if state is not self._state:
            self._state = state
            self._state_since_ms = now_ms
        self.needs_downgrade = migration.is_downgrade_due(self._group_state)
