"""`OffsetCoordinator`: the part of the group coordinator that concerns offsets.

Invariants: a commit is validated at once, and answered when it is in the store. Offsets that are
committed in a transaction are pending until its marker comes: then all of them are readable, or
none ever is. A marker may be repeated, and may come to groups that have no offsets in the
transaction. Before the first offsets of a transaction in a shard, its coordinator has to confirm
that it is open (`OpenTransactions`).

Handlers verify transactions, and send markers; `GroupOffsets` has the offsets of one group.
"""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Final

from kafscale.broker.group_coordinator.group_registry import GroupRegistry
from kafscale.broker.group_coordinator.group_runtime import GroupRuntime, OffsetSettings
from kafscale.broker.group_coordinator.open_transactions import OpenTransaction, VerificationGuard
from kafscale.broker.group_coordinator.transaction_endings import TransactionEndings
from kafscale.broker.shards.pausable_clock import PausableClock
from kafscale.broker.shards.shard_session import ShardSession, ShardSessions
from kafscale.errors import (
    GroupNotFoundError,
    IllegalGenerationError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    KafscaleError,
    NonEmptyGroupError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    SubscribedTopicError,
    UnknownApiError,
)
from kafscale.groups.committed_offsets import CommittedOffset, expired
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.model import GroupRecord, GroupType
from kafscale.metadata.schema.model import Topic
from kafscale.observability.logging import get_logger
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

EMPTY: Final = "Empty"


class OffsetCoordinator:
    """The offsets of all groups of this broker's shards."""

    def __init__(
        self,
        registry: GroupRegistry,
        sessions: ShardSessions,
        clock: PausableClock,
        offset_settings: OffsetSettings,
    ) -> None:
        self.registry = registry
        self.offset_settings = offset_settings
        self._sessions = sessions
        self._clock = clock
        self._is_shut_down = False
        self._endings = TransactionEndings()

    # --- commits --------------------------------------------------------------------------------

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
            return session.wait_durable()
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
        return session.wait_durable()

    # --- transactions ---------------------------------------------------------------------------

    def start_verification(
        self, group_id: str, producer_id: int, producer_epoch: int, *, adds_partition: bool
    ) -> VerificationGuard | None:
        """The guard for offsets in a transaction; None if they need none, or have another error.

        To be called before the transaction's coordinator is asked: `adds_partition` is whether to
        add the group to the transaction.
        """
        shard = self._require_session(group_id).shard
        transactions = self.registry.open_transactions
        if transactions.epoch_of(shard, producer_id) == producer_epoch:
            return None
        return transactions.start_verification(
            shard, producer_id, producer_epoch, adds_partition=adds_partition
        )

    async def commit_in_transaction(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        *,
        producer_id: int,
        producer_epoch: int,
        offsets: Mapping[TopicPartition, CommittedOffset],
        guard: VerificationGuard | None = None,
    ) -> None:
        """Add offsets to the transaction of a producer; on return they are in the store.

        `guard` is that of `start_verification`, once the transaction is verified.
        """
        session = await self._session_after_last_transaction(group_id, producer_id)
        runtime = self._runtime_of_transaction(group_id, member_id, instance_id, generation)
        try:
            self._check_transaction(session.shard, producer_id, producer_epoch, guard)
            runtime.offsets.check_metadata(
                offsets, self.offset_settings.group_metadata_bytes_max, producer_id
            )
            if offsets:
                now_ms = self._clock() + self._clock.skew_ms
                runtime.offsets.commit_in_transaction(producer_id, producer_epoch, offsets, now_ms)
                runtime.count_commit()
        finally:
            self.registry.remove_if_empty(runtime)
        await session.wait_durable()

    def write_markers(
        self,
        shard: int,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int | None = None,
    ) -> Awaitable[None]:
        """End a producer's transaction for all groups of a shard; completes when that is durable.

        Raises `InvalidProducerEpochError` if a later transaction of the producer is open, and
        `TransactionCoordinatorFencedError` if the marker is by a coordinator that was replaced.
        """
        self._check_not_shut_down()
        session = self._sessions.require_shard(shard)
        transactions = self.registry.open_transactions
        _check_epoch(producer_epoch, transactions.epoch_of(shard, producer_id))
        if coordinator_epoch is not None:
            transactions.check_coordinator(shard, producer_id, coordinator_epoch)
        transactions.on_marker(shard, producer_id, producer_epoch)
        ending = self._endings.find(session, producer_id) or self._endings.start(
            session, producer_id, transactions.take(shard, producer_id), is_commit=is_commit
        )
        return _wait_for(ending, session) if ending else session.wait_durable()

    async def _session_after_last_transaction(
        self, group_id: str, producer_id: int
    ) -> ShardSession:
        """The session of a group, once no transaction of the producer is being ended there."""
        while True:
            session = self._require_session(group_id)
            ending = self._endings.find(session, producer_id)
            runtime = self.registry.get(group_id)
            if ending is not None:
                await asyncio.shield(ending)
            elif runtime is not None and runtime.offsets.is_ending(producer_id):
                await session.wait_durable()
            else:
                return session

    def open_transactions(self, shard: int) -> Sequence[OpenTransaction]:
        """The transactions in which groups of a shard have offsets, ascending by producer id."""
        self._check_not_shut_down()
        self._sessions.require_shard(shard)
        return self.registry.open_transactions.list(shard)

    def _runtime_of_transaction(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> GroupRuntime:
        runtime = self.registry.get(group_id)
        if runtime is None:
            if generation >= 0:
                raise IllegalGenerationError(f"Group {group_id} not found.")
            return self.registry.get_or_create(group_id)
        try:
            runtime.group.check_transactional_commit(member_id, instance_id, generation)
        except StaleMemberEpochError as error:
            raise IllegalGenerationError(str(error)) from error
        return runtime

    def _check_transaction(
        self, shard: int, producer_id: int, producer_epoch: int, guard: VerificationGuard | None
    ) -> None:
        epoch = self.registry.open_transactions.epoch_of(shard, producer_id)
        _check_epoch(producer_epoch, epoch)
        is_verified = guard is not None and guard.is_valid and guard.epoch == producer_epoch
        if epoch != producer_epoch and not is_verified:
            raise InvalidTransactionStateError("Record was not part of an ongoing transaction")

    # --- reading and deleting -------------------------------------------------------------------

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

    def unstable_offsets(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions whose offsets an open transaction of the group may change."""
        runtime = self.registry.get(group_id)
        return runtime.offsets.unstable if runtime else ()

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
        deleted = {each for each, error in results.items() if error is None}
        runtime.offsets.delete(deleted)
        runtime.offsets.delete_pending(lambda topic_partition, _: topic_partition in deleted)
        await runtime.session.wait_durable()
        return results

    # --- expiration and deleted topics ----------------------------------------------------------

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
        in_transactions = runtime.offsets.in_transactions
        old = tuple(
            each
            for each in expired(
                runtime.offsets.newest,
                now_ms=self._clock() + self._clock.skew_ms,
                retention_ms=self.offset_settings.retention_ms,
                empty_since_ms=record.state_since_ms if is_empty and record.protocol_type else None,
                is_read=(lambda _topic: False) if is_empty else runtime.group.subscribes_to,
            )
            if each not in in_transactions
        )
        if old:
            logger.info("offsets expired", group_id=record.group_id, count=len(old))
            runtime.offsets.delete(old)
        if is_empty and runtime.offsets.is_empty:
            self.registry.remove(runtime)

    def _delete_topic_offsets(self, topic: Topic) -> None:
        # A shard that was just loaded may have offsets of a newer topic of that name.
        def is_of_topic(topic_partition: TopicPartition, committed: CommittedOffset) -> bool:
            return topic_partition[0] == topic.name and committed.is_of(topic.id)

        for runtime in self.registry:
            topic_partitions = [
                topic_partition
                for topic_partition, committed in runtime.offsets.newest.items()
                if is_of_topic(topic_partition, committed)
            ]
            if topic_partitions:
                runtime.offsets.delete(topic_partitions)
            runtime.offsets.delete_pending(is_of_topic)

    # --- internals ------------------------------------------------------------------------------

    def _runtime(self, group_id: str) -> GroupRuntime:
        self._require_session(group_id)
        runtime = self.registry.get(group_id)
        if runtime is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        return runtime

    def _require_session(self, group_id: str) -> ShardSession:
        """The shard session that serves a group; raises if there is none, or not yet."""
        self._check_not_shut_down()
        return self._sessions.require(group_id)

    def _check_not_shut_down(self) -> None:
        if self._is_shut_down:
            raise NotCoordinatorError("this broker is stopping")


async def _wait_for(ending: "asyncio.Task[None]", session: ShardSession) -> None:
    """Wait until all groups are ended, and that is durable."""
    await asyncio.shield(ending)
    await session.wait_durable()


def _check_epoch(epoch: int, open_epoch: int | None) -> None:
    if open_epoch is not None and epoch < open_epoch:
        raise InvalidProducerEpochError(
            f"the producer is at epoch {open_epoch}, epoch {epoch} is over"
        )


def _uses_consumer_protocol(runtime: GroupRuntime, member_id: str) -> bool:
    """Whether a member uses the consumer protocol; false for unknown members."""
    if runtime.group.group_type is GroupType.CLASSIC:
        return False
    member = runtime.record().members.get(member_id)
    return member is not None and not member.is_classic


def _has_consumer_protocol_type(record: GroupRecord) -> bool:
    return record.group_type is GroupType.CONSUMER or record.protocol_type == PROTOCOL_TYPE
