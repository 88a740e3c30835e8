"""The group coordinator: the entry point of all requests that concern consumer groups.

Invariants: events of groups are handled here, in one event loop, without awaits in between;
requests that have to wait hold a reply token. An offset commit is answered once it is in the store.
What was acknowledged survives this process, and so do members: those that return in time find their
group unchanged, on this broker or on the next owner of its shard. Groups of other shards are
unknown here.

`groups` has the state machines, `shards` opens and releases shards, and the handlers decode and
encode the requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from kafscale.broker.group_coordinator.group_registry import GroupRegistry, topic_infos
from kafscale.broker.group_coordinator.group_runtime import (
    GroupRuntime,
    OffsetSettings,
    PendingReplies,
)
from kafscale.broker.group_coordinator.pausable_clock import POLL_SECONDS, GroupClock
from kafscale.broker.group_coordinator.shard_logs import ShardLogs
from kafscale.broker.group_coordinator.shard_session import Phase, ShardSession, ShardSessions
from kafscale.broker.group_coordinator.shards import GroupShards
from kafscale.broker.group_coordinator.write_sequence import WriteSequence
from kafscale.broker.group_coordinator.writer import GroupWriter
from kafscale.errors import (
    GroupNotFoundError,
    IllegalGenerationError,
    KafscaleError,
    NonEmptyGroupError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    SubscribedTopicError,
    UnknownApiError,
    UnknownMemberError,
)
from kafscale.groups.committed_offsets import CommittedOffset, expired
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.effects import Alive, Joined, Left, Reconciled, Synced
from kafscale.groups.events import ConsumerHeartbeat, Heartbeat, Join, Leave, Sync, TopicsChanged
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord, GroupType
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema.model import Assignment, Topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

WRITE_SECONDS_MAX: Final = 5.0
"""How long a commit waits for the store, as in Kafka, before the client has to retry."""

LEASE_NOT_VALID: Final = "the broker's lease is not valid"
EMPTY: Final = "Empty"


class Coordinator:
    """All consumer groups of this broker's shards, as the handlers see them."""

    def __init__(
        self,
        store: MetadataStore,
        topic_store: TopicStore,
        settings: GroupSettings,
        offset_settings: OffsetSettings,
        metrics: Metrics,
        *,
        broker_id: int,
        linger_ms: int,
        clock: GroupClock,
        random: Random,
        lease_is_valid: Callable[[], bool] = lambda: True,
    ) -> None:
        self._topic_store = topic_store
        self.offset_settings = offset_settings
        self._clock = clock
        self._lease_is_valid = lease_is_valid
        """Whether no other broker can own the shards, by this broker's own clock."""
        self._pending_replies = PendingReplies()
        self._sessions = ShardSessions(lease_is_valid)
        self.writer = GroupWriter(
            WriteSequence(store, broker_id),
            clock,
            linger_ms=linger_ms,
            random=random,
            on_lost=self._on_session_lost,
        )
        self.registry = GroupRegistry(
            settings,
            self._sessions,
            self._pending_replies,
            metrics,
            topic_store=topic_store,
            clock=clock,
        )
        self._shards = GroupShards(store, topic_store, self._sessions, self.registry, self.writer)
        self.logs = ShardLogs(store, self._sessions, lambda: clock() + clock.skew_ms)
        self._is_shut_down = False
        self._topics_current = True

    # --- start and stop -------------------------------------------------------------------------

    async def start(self) -> None:
        """Follow the topic store, which must have been started; there are no shards yet."""
        self.registry.topics = topic_infos(self._topic_store.visible)
        self._topic_store.subscribe(self._on_topic)
        self._topic_store.internal.subscribe(self._on_topic)

    async def run(self) -> None:
        """Write groups, and expire offsets; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.writer.run())
            group.create_task(self._expire())
            group.create_task(self._poll_lease())
            group.create_task(self.logs.run())

    def shut_down(self) -> None:
        """Redirect waiting clients: this broker is about to stop."""
        self._is_shut_down = True
        error = NotCoordinatorError("this broker is stopping")
        for runtime in self.registry:
            runtime.abort(error)

    # --- shards ---------------------------------------------------------------------------------

    @property
    def shards(self) -> Collection[int]:
        """The shards that are served; those that are still loading are not."""
        return {each.shard for each in self._sessions if each.phase is Phase.SERVING}

    async def open_shards(self, guards: Mapping[int, OwnershipGuard]) -> None:
        """Serve these shards, once everything that the store holds for them is loaded.

        Until then their clients get COORDINATOR_LOAD_IN_PROGRESS. Raises `OperatingError` if the
        store fails; none of them is served then.
        """
        await self._shards.open(guards)

    async def release_shards(self, shards: Collection[int]) -> None:
        """Stop serving these shards; on return the store has everything of them.

        It takes as long as the store needs, while `run` runs, or until they are dropped.
        """
        await self._shards.release(shards)

    def drop_shard(self, shard: int) -> None:
        """Stop serving a shard that another broker owns: nothing more of it is written."""
        self._shards.drop([shard])

    def drop_shards(self) -> None:
        """Stop serving all shards at once, and write nothing more."""
        self._shards.drop([session.shard for session in self._sessions])

    def update_guard(self, shard: int, assignment: Assignment) -> None:
        """Record a newer assignment; one that names another owner ends the shard session."""
        self._shards.update(shard, assignment)

    # --- members --------------------------------------------------------------------------------

    def join(self, group_id: str, event: Join) -> asyncio.Future[Joined]:
        self._require_session(group_id)
        return self._handle(self.registry.get_or_create_classic(group_id, event), event)

    def sync(self, group_id: str, event: Sync) -> asyncio.Future[Synced]:
        return self._handle(self._runtime_of_member(group_id), event)

    def heartbeat(self, group_id: str, event: Heartbeat) -> asyncio.Future[Alive]:
        return self._handle(self._runtime_of_member(group_id), event)

    def leave(self, group_id: str, event: Leave) -> asyncio.Future[Left]:
        return self._handle(self._runtime_of_member(group_id), event)

    def consumer_heartbeat(
        self, group_id: str, event: ConsumerHeartbeat
    ) -> asyncio.Future[Reconciled]:
        self._require_session(group_id)
        return self._handle(self.registry.get_or_create_consumer(group_id, event), event)

    # --- groups ---------------------------------------------------------------------------------

    def describe(self, group_id: str) -> GroupRecord:
        return self._runtime(group_id).record()

    def list(self) -> Sequence[GroupRecord]:
        """All groups of our shards; raises while some are still loading."""
        self._check_not_shut_down()
        self._sessions.check_all_loaded()
        return [runtime.record() for runtime in self.registry]

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, with its offsets."""
        runtime = self._runtime(group_id)
        if runtime.group.state != EMPTY:
            raise NonEmptyGroupError(f"group {group_id!r} has members")
        self.registry.remove(runtime)
        await runtime.session.wait_durable(WRITE_SECONDS_MAX)
        logger.info("group deleted", group_id=group_id)

    # --- offsets --------------------------------------------------------------------------------

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        version_knows_missing_groups: bool,
    ) -> Awaitable[None]:
        """Commit offsets; the awaitable completes when they are in the store.

        The commit is validated at once: a client may commit and leave without waiting.
        """
        session = self._require_session(group_id)
        runtime = self.registry.get(group_id)
        if runtime is not None:
            runtime.group.check_commit(member_id, instance_id, generation, self._clock())
            if not version_knows_missing_groups and _uses_consumer_protocol(runtime, member_id):
                raise UnknownApiError(f"group {group_id!r} needs a newer version of OffsetCommit")
        elif generation < 0 and offsets:
            runtime = self.registry.get_or_create(group_id)
        elif generation < 0:
            return session.wait_durable(WRITE_SECONDS_MAX)
        elif version_knows_missing_groups:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        else:
            raise IllegalGenerationError(f"Group {group_id} not found.")
        try:
            runtime.offsets.check_metadata(offsets, self.offset_settings.group_metadata_bytes_max)
        except OffsetMetadataTooLargeError:
            self.registry.remove_if_empty(runtime)
            raise
        runtime.offsets.commit(offsets)
        runtime.count_commit()
        return session.wait_durable(WRITE_SECONDS_MAX)

    def fetch(
        self, group_id: str, member_id: str | None, member_epoch: int
    ) -> Mapping[TopicPartition, CommittedOffset]:
        """The committed offsets of a group; none for an unknown group, as in Kafka."""
        self._require_session(group_id)
        runtime = self.registry.get(group_id)
        if runtime is None:
            return {}
        runtime.group.check_fetch(member_id, member_epoch)
        return runtime.offsets.committed

    async def delete_offsets(
        self, group_id: str, topic_partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KafscaleError | None]:
        """Delete committed offsets, except for topics that members are subscribed to.

        Subscriptions are known of consumers only: members of other protocols have to leave first.
        """
        runtime = self._runtime(group_id)
        if runtime.group.member_count and not _has_consumer_protocol_type(runtime.record()):
            raise NonEmptyGroupError(
                f"group {group_id!r} has members that do not use the consumer protocol"
            )
        results: dict[TopicPartition, KafscaleError | None] = {
            topic_partition: SubscribedTopicError(
                f"members of group {group_id!r} are subscribed to topic {topic_partition[0]!r}"
            )
            if runtime.group.subscribes_to(topic_partition[0])
            else None
            for topic_partition in topic_partitions
        }
        runtime.offsets.delete(
            [topic_partition for topic_partition, error in results.items() if error is None]
        )
        await runtime.session.wait_durable(WRITE_SECONDS_MAX)
        return results

    # --- background tasks -----------------------------------------------------------------------

    async def _poll_lease(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            if self._lease_is_valid():
                self._clock.resume(LEASE_NOT_VALID)
            else:
                self._clock.pause(LEASE_NOT_VALID)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(self.offset_settings.check_interval_ms / 1000)
            self.expire_offsets()

    def expire_offsets(self) -> None:
        """Delete expired offsets, and empty groups that have none left."""
        for runtime in self.registry:
            try:
                self._expire_group(runtime)
            except Exception:
                # A boundary: an error of one group must not keep the others from expiring.
                logger.exception("offsets not expired", group_id=runtime.group.group_id)

    def _expire_group(self, runtime: GroupRuntime) -> None:
        record = runtime.record()
        is_empty = record.state == EMPTY
        old = tuple(
            expired(
                runtime.offsets.newest,
                now_ms=self._clock() + self._clock.skew_ms,
                retention_ms=self.offset_settings.retention_ms,
                empty_since_ms=record.state_since_ms if is_empty and record.protocol_type else None,
                is_read=(lambda _topic: False) if is_empty else runtime.group.subscribes_to,
            )
        )
        if old:
            logger.info("offsets expired", group_id=record.group_id, count=len(old))
            runtime.offsets.delete(old)
        if is_empty and not runtime.offsets.newest:
            self.registry.remove(runtime)

    def _on_topic(self, before: Topic | None, after: Topic | None) -> None:
        if after is None:
            assert before is not None
            self._delete_topic_offsets(before)
        if self._topics_current:
            self._topics_current = False
            asyncio.get_running_loop().call_soon(self._notify_groups)

    def _delete_topic_offsets(self, topic: Topic) -> None:
        for runtime in self.registry:
            # A shard that was just loaded may have offsets of a newer topic of that name.
            topic_partitions = [
                topic_partition
                for topic_partition, committed in runtime.offsets.newest.items()
                if topic_partition[0] == topic.name and committed.is_of(topic.id)
            ]
            if topic_partitions:
                runtime.offsets.delete(topic_partitions)

    def _notify_groups(self) -> None:
        """Notify consumer groups of all topic changes since the last notification."""
        self._topics_current = True
        self.registry.topics = topic_infos(self._topic_store.visible)
        for runtime in self.registry:
            if runtime.group.group_type is GroupType.CONSUMER:
                runtime.handle(TopicsChanged(topics=self.registry.topics))

    # --- internals ------------------------------------------------------------------------------

    def _handle(
        self, runtime: GroupRuntime, event: Join | Sync | Heartbeat | Leave | ConsumerHeartbeat
    ) -> "asyncio.Future[Any]":
        reply_token, response = self._pending_replies.create()
        runtime.handle(msgspec.structs.replace(event, reply_token=reply_token))
        self.registry.maybe_downgrade(runtime)
        self.registry.remove_if_empty(runtime)
        return response

    def _runtime_of_member(self, group_id: str) -> GroupRuntime:
        self._require_session(group_id)
        runtime = self.registry.get(group_id)
        if runtime is None:
            raise UnknownMemberError(f"Group {group_id} not found.")
        return runtime

    def _runtime(self, group_id: str) -> GroupRuntime:
        self._require_session(group_id)
        runtime = self.registry.get(group_id)
        if runtime is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        return runtime

    def _on_session_lost(self, session: ShardSession) -> None:
        self._shards.end_lost_session(session)

    def _require_session(self, group_id: str) -> ShardSession:
        """The shard session that serves a group; raises if there is none, or not yet."""
        self._check_not_shut_down()
        return self._sessions.require(group_id)

    def _check_not_shut_down(self) -> None:
        if self._is_shut_down:
            raise NotCoordinatorError("this broker is stopping")


def _uses_consumer_protocol(runtime: GroupRuntime, member_id: str) -> bool:
    """Whether a member uses the consumer protocol; false for unknown members."""
    if runtime.group.group_type is GroupType.CLASSIC:
        return False
    member = runtime.record().members.get(member_id)
    return member is not None and not member.is_classic


def _has_consumer_protocol_type(record: GroupRecord) -> bool:
    return record.group_type is GroupType.CONSUMER or record.protocol_type == PROTOCOL_TYPE
