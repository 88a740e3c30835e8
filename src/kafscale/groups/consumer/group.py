"""`ConsumerGroup`: a group of the new protocol, as the coordinator sees it.

The door through which everything comes; who is in the group and how it moves on is in `roster`,
the two protocols that its members may speak are in `heartbeats` and `classic_members`.
"""

from collections.abc import Mapping

from kafscale.errors import (
    IllegalGenerationError,
    KafscaleError,
    StaleMemberEpochError,
    UnknownMemberError,
)
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer import classic_members, migration
from kafscale.groups.consumer.heartbeat import consumer_heartbeat
from kafscale.groups.consumer.member import NEVER_MS, Member, restored
from kafscale.groups.consumer.members import Roster, State
from kafscale.groups.consumer.subscriptions import Catalogue, is_wanted
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
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
from kafscale.groups.model import GroupRecord, Kind, TopicInfo

Topics = Mapping[str, TopicInfo]


class ConsumerGroup:
    """A group whose members are assigned their partitions by the coordinator."""

    def __init__(self, group_id: str, settings: GroupSettings, topics: Topics, now_ms: int) -> None:
        self._group_id = group_id
        self._roster = Roster(settings, Catalogue(topics))
        self._state = State.EMPTY
        self._state_since_ms = now_ms
        self._wants_downgrade = False

    @classmethod
    def restored(
        cls, record: GroupRecord, settings: GroupSettings, topics: Topics, now_ms: int
    ) -> "ConsumerGroup":
        """A group as it was recorded; where topics have changed since, a new epoch begins."""
        assert record.kind is Kind.CONSUMER
        group = cls(record.group_id, settings, topics, now_ms)
        roster = group._roster
        roster.epoch = record.generation
        roster.assignment_epoch = record.assignment_epoch
        for member in record.members.values():
            roster.enter(restored(member, settings.consumer_session_timeout_ms, now_ms))
        if roster.is_outdated():
            roster.epoch += 1
        group._state = roster.state
        group._state_since_ms = record.state_since_ms
        group._wants_downgrade = migration.is_downgrade_due(roster)
        return group

    @classmethod
    def upgraded(
        cls, record: GroupRecord, settings: GroupSettings, topics: Topics, now_ms: int
    ) -> "ConsumerGroup":
        """A classic group whose members go on as they are, for one of the new protocol to join."""
        group = cls(record.group_id, settings, topics, now_ms)
        migration.upgrade(group._roster, record, now_ms)
        group._state = group._roster.state
        return group

    @property
    def group_id(self) -> str:
        return self._group_id

    @property
    def kind(self) -> Kind:
        return Kind.CONSUMER

    @property
    def state(self) -> str:
        return self._state.value

    @property
    def member_count(self) -> int:
        return len(self._roster.members)

    @property
    def deadline_ms(self) -> int | None:
        due_ms = self._roster.due_ms
        return None if due_ms == NEVER_MS else due_ms

    @property
    def wants_downgrade(self) -> bool:
        """Whether the last member of the new protocol has gone, and classic ones are left."""
        return self._wants_downgrade

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Let an event happen; a request that is refused changes nothing but deadlines."""
        if isinstance(event, TopicsChanged):
            effects = self._topics_changed(event)
        elif isinstance(event, Tick):
            effects = self._tick(now_ms)
        else:
            try:
                effects = self._request(event, now_ms)
            except KafscaleError as error:
                return [Reply(event.ticket, error)]
        if any(isinstance(effect, Save) for effect in effects):
            self._note(now_ms)
        return effects

    def dismiss(self, error: KafscaleError, now_ms: int) -> list[Effect]:
        """Nobody ever waits in here: every request is answered at once."""
        del error, now_ms
        return []

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        del instance_id  # The member id is enough, as in Kafka.
        if generation < 0 and not self._roster.members:
            return
        self._in_epoch(member_id, generation).heartbeat_ms = now_ms

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is not None or member_epoch >= 0:
            self._in_epoch(member_id or "", member_epoch)

    def subscribes_to(self, topic: str) -> bool:
        wishes = {member.profile.wish for member in self._roster.members.values()}
        return any(is_wanted(wish, topic) for wish in wishes)

    def record(self) -> GroupRecord:
        roster = self._roster
        return GroupRecord(
            group_id=self._group_id,
            kind=Kind.CONSUMER,
            state=self._state.value,
            state_since_ms=self._state_since_ms,
            protocol_type=PROTOCOL_TYPE,
            protocol=roster.assignor,
            generation=roster.epoch,
            assignment_epoch=roster.assignment_epoch,
            members={member.member_id: member.record() for member in roster.members.values()},
        )

    def downgraded(self) -> GroupRecord:
        """A classic group of those who are left, which they have to join again."""
        return migration.downgraded(self.record(), self._roster.catalogue)

    def _request(
        self, event: ConsumerHeartbeat | Join | Sync | Heartbeat | Leave, now_ms: int
    ) -> list[Effect]:
        match event:
            case ConsumerHeartbeat():
                return consumer_heartbeat(self._roster, event, now_ms)
            case Heartbeat():
                return classic_members.heartbeat(self._roster, event, now_ms)
            case Join():
                return classic_members.join(self._roster, event, now_ms)
            case Sync():
                return classic_members.sync(self._roster, event, now_ms)
            case Leave():
                return classic_members.leave(self._roster, event)

    def _topics_changed(self, event: TopicsChanged) -> list[Effect]:
        roster = self._roster
        wishes = {member.profile.wish for member in roster.members.values()}
        before = roster.catalogue.partition_counts(wishes)
        roster.catalogue = Catalogue(event.topics)
        if roster.catalogue.partition_counts(wishes) == before:
            return []
        return [roster.bump("topics changed"), Save()]

    def _tick(self, now_ms: int) -> list[Effect]:
        if now_ms < self._roster.due_ms:
            return []
        late = self._roster.expired(now_ms)
        return self._roster.remove(late, late[0].missed(now_ms) or "") if late else []

    def _in_epoch(self, member_id: str, epoch: int) -> Member:
        member = self._roster.members.get(member_id)
        if member is None:
            raise UnknownMemberError(f"there is no member {member_id}")
        if epoch != member.standing.epoch:
            told = f"the member is in epoch {member.standing.epoch}, not {epoch}"
            if member.profile.is_classic:
                raise IllegalGenerationError(told)
            raise StaleMemberEpochError(told)
        return member

    def _note(self, now_ms: int) -> None:
        """Note in which state the group is, now that it has changed."""
        state = self._roster.state
        if state is not self._state:
            self._state = state
            self._state_since_ms = now_ms
        self._wants_downgrade = migration.is_downgrade_due(self._roster)
