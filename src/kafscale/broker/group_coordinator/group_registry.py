"""The groups that this broker coordinates, by id: lookup, creation, change of the group type.

Invariants: an id has one group at a time, of one type. A group without members takes the type of
the next member that joins. A group with members becomes a consumer group when the first member of
that protocol joins, if it can be upgraded, and a classic group when the last of them has left. Its
offsets stay.
"""

from collections.abc import Callable, Iterator, Mapping

from kafscale.broker.group_coordinator.group_runtime import GroupRuntime
from kafscale.broker.group_coordinator.open_transactions import OpenTransactions
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.pending_replies import PendingReplies
from kafscale.broker.shards.shard_session import ShardSessions
from kafscale.errors import (
    GroupNotFoundError,
    InvalidGroupIdError,
    KafscaleError,
    RebalanceInProgressError,
    UnknownMemberError,
)
from kafscale.groups.classic.group import ClassicGroup
from kafscale.groups.consumer.group import ConsumerGroup
from kafscale.groups.effects import Reply
from kafscale.groups.events import ConsumerHeartbeat, Join
from kafscale.groups.group import Group, GroupSettings
from kafscale.groups.model import GroupRecord, GroupType, TopicInfo
from kafscale.metadata.schema.group_codec import encode_group
from kafscale.metadata.schema.model import SHARDS_TOPIC, Topic
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import Counters

logger = get_logger(__name__)

JOINING_EPOCH = 0

Overrides = Callable[[str, GroupSettings], GroupSettings]
"""The settings of a single group, by its id, for those of all groups."""

GROUP_ID_BYTES_MAX = 1024
"""The id is part of the keys of the metadata store, of log lines and of metrics."""


class GroupRegistry:
    """All groups of this broker."""

    def __init__(
        self,
        settings: GroupSettings,
        sessions: ShardSessions,
        pending_replies: PendingReplies,
        counters: Counters,
        *,
        topic_store: TopicStore,
        clock: PausableClock,
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._pending_replies = pending_replies
        self._counters = counters
        self._topic_store = topic_store
        self._topic_names = TopicNames(topic_store.by_id)
        self._clock = clock
        self._groups: dict[str, GroupRuntime] = {}
        self.open_transactions = OpenTransactions()
        """The transactions in which groups have offsets."""
        self.topics: Mapping[str, TopicInfo] = {}
        """Topics for consumer groups; the coordinator keeps them current."""
        self._overrides: Overrides = lambda _group_id, settings: settings

    def configure(self, settings: GroupSettings, overrides: Overrides) -> None:
        """Change the settings of all groups."""
        self._settings = settings
        self._overrides = overrides
        for group_id in self._groups:
            self.configure_group(group_id)

    def configure_group(self, group_id: str) -> None:
        """Apply the settings of a group, which may not exist, after they have changed."""
        runtime = self._groups.get(group_id)
        if runtime is not None:
            runtime.group.configure(self._settings_of(group_id))

    def _settings_of(self, group_id: str) -> GroupSettings:
        return self._overrides(group_id, self._settings)

    def __iter__(self) -> Iterator[GroupRuntime]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> GroupRuntime | None:
        return self._groups.get(group_id)

    # --- creating and removing ------------------------------------------------------------------

    def restore(self, record: GroupRecord) -> GroupRuntime:
        """Restore a group from its record."""
        runtime = self._add(self._restored(record))
        runtime.is_saved = True
        return runtime

    def get_or_create(self, group_id: str) -> GroupRuntime:
        """The group of this id; a new one without members, if there is none."""
        runtime = self._groups.get(group_id)
        if runtime is None:
            check_group_id(group_id)
            runtime = self._add(self._new_classic(group_id))
        return runtime

    def remove(self, runtime: GroupRuntime) -> None:
        """Delete a group, here and in the store."""
        runtime.delete()
        self.unload(runtime)

    def unload(self, runtime: GroupRuntime) -> None:
        """Drop a group here; the store keeps it."""
        runtime.offsets.close()
        del self._groups[runtime.group.group_id]
        self._counters.forget_group(runtime.group.group_id)

    def remove_if_empty(self, runtime: GroupRuntime) -> None:
        """Drop a group that has neither members nor offsets nor a record."""
        if runtime.is_empty and self._groups.get(runtime.group.group_id) is runtime:
            runtime.close()
            self.unload(runtime)

    # --- group types ----------------------------------------------------------------------------

    def get_or_create_classic(self, group_id: str, event: Join) -> GroupRuntime:
        """The group that a classic member may join."""
        runtime = self._groups.get(group_id)
        if runtime is None:
            if event.member_id:
                raise UnknownMemberError(f"Group {group_id} not found.")
            return self.get_or_create(group_id)
        if runtime.group.group_type is GroupType.CONSUMER and not runtime.group.member_count:
            runtime.replace_group(
                ClassicGroup(group_id, self._settings_of(group_id), self._clock())
            )
        return runtime

    def get_or_create_consumer(self, group_id: str, event: ConsumerHeartbeat) -> GroupRuntime:
        """The group that a member of the consumer protocol may join, or is in."""
        runtime = self._groups.get(group_id)
        now_ms = self._clock()
        if runtime is not None and runtime.group.group_type is GroupType.CONSUMER:
            return runtime
        if event.member_epoch != JOINING_EPOCH:
            raise _not_found(group_id, event.member_epoch, runtime)
        if runtime is None:
            check_group_id(group_id)
            return self._add(
                ConsumerGroup(group_id, self._settings_of(group_id), self.topics, now_ms)
            )
        if runtime.group.member_count:
            self._upgrade(runtime, event)
        else:
            self._abort_pending(runtime)
            runtime.replace_group(
                ConsumerGroup(group_id, self._settings_of(group_id), self.topics, now_ms)
            )
        return runtime

    def maybe_downgrade(self, runtime: GroupRuntime) -> None:
        """Convert a consumer group to a classic one, if only classic members are left."""
        group = runtime.group
        if isinstance(group, ConsumerGroup) and group.needs_downgrade:
            self._abort_pending(runtime)
            runtime.replace_group(self._restored(group.downgraded()))
            logger.info("group downgraded", group_id=group.group_id)

    def _upgrade(self, runtime: GroupRuntime, event: ConsumerHeartbeat) -> None:
        record = runtime.group.record()
        settings = self._settings_of(record.group_id)
        if not settings.upgrades:
            raise GroupNotFoundError(f"group {record.group_id!r} has members of another protocol")
        now_ms = self._clock()
        # A member that would be rejected must not disturb the others: try it on a copy first.
        trial = ConsumerGroup.upgraded(record, settings, self.topics, now_ms)
        for effect in trial.handle(event, now_ms):
            if isinstance(effect, Reply) and isinstance(effect.response, KafscaleError):
                raise effect.response
        upgraded = ConsumerGroup.upgraded(record, settings, self.topics, now_ms)
        self._abort_pending(runtime)
        runtime.replace_group(upgraded)
        logger.info("group upgraded", group_id=record.group_id, member_count=upgraded.member_count)

    def _new_classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self._settings_of(group_id), self._clock())

    def _new_consumer(self, group_id: str) -> ConsumerGroup:
        settings = self._settings_of(group_id)
        return ConsumerGroup(group_id, settings, self.topics, self._clock())

    def _abort_pending(self, runtime: GroupRuntime) -> None:
        """Make waiting members retry: their group is about to be replaced."""
        error = RebalanceInProgressError("the group changes its protocol; rejoin")
        runtime.execute(runtime.group.abort(error, self._clock()))

    def _restored(self, record: GroupRecord) -> Group:
        now_ms = self._clock()
        settings = self._settings_of(record.group_id)
        if record.group_type is GroupType.CONSUMER:
            return ConsumerGroup.restored(record, settings, self.topics, now_ms)
        return ClassicGroup.restored(record, settings, now_ms)

    def _add(self, group: Group) -> GroupRuntime:
        # As in Kafka, the topic exists from the first group on.
        self._topic_store.internal.declare(SHARDS_TOPIC, self._clock() + self._clock.skew_ms)
        session = self._sessions.get_by_id(group.group_id)
        assert session is not None, "the group's shard is owned by this broker"
        runtime = GroupRuntime(
            group,
            session,
            self._pending_replies,
            self._counters.group(group.group_id),
            encode=lambda record: encode_group(record, self._topic_names),
            clock=self._clock,
            open_transactions=self.open_transactions,
        )
        self._groups[group.group_id] = runtime
        return runtime


def topic_infos(topics: Mapping[str, Topic]) -> dict[str, TopicInfo]:
    return {
        name: TopicInfo(name=name, id=topic.id, partition_count=topic.partitions)
        for name, topic in topics.items()
    }


class TopicNames(Mapping[bytes, str]):
    """Live view of topic names by topic id."""

    def __init__(self, by_id: Mapping[bytes, Topic]) -> None:
        self._by_id = by_id

    def __getitem__(self, topic_id: bytes) -> str:
        return self._by_id[topic_id].name

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)


def check_group_id(group_id: str) -> None:
    """Raise if the id is too long for a group to exist."""
    if (size_bytes := len(group_id.encode())) > GROUP_ID_BYTES_MAX:
        raise InvalidGroupIdError(
            f"a group id of {size_bytes} bytes exceeds the limit of {GROUP_ID_BYTES_MAX}"
        )


def _not_found(
    group_id: str, member_epoch: int, runtime: GroupRuntime | None
) -> GroupNotFoundError:
    """Kafka's words for a heartbeat of a member whose consumer group does not exist."""
    if runtime is not None:
        return GroupNotFoundError(f"Group {group_id} is not a consumer group.")
    kind = "Group" if member_epoch < JOINING_EPOCH else "Consumer group"
    return GroupNotFoundError(f"{kind} {group_id} not found.")
