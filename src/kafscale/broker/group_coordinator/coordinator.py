"""The coordinator: the one door through which clients reach consumer groups.

The laws: whatever happens to a group happens here, in one event loop, without waiting in between;
who has to wait, waits outside, with a ticket. A commit is answered once it is in the store. What
was answered survives this process, and so do members: those who come back in time find their group
as they left it, here or wherever its shard is by then. Groups of other shards are not known here.

What groups do is left to `groups`, how shards come and go to `shards`, and what requests look like
to the handlers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, Final

import msgspec

from kafscale.broker.group_coordinator.group_registry import GroupDirectory
from kafscale.broker.group_coordinator.group_runtime import HostedGroup
from kafscale.broker.group_coordinator.pausable_clock import LOOK_SECONDS, GroupClock
from kafscale.broker.group_coordinator.pending_replies import Tickets
from kafscale.broker.group_coordinator.shard_session import Phase, Tenure
from kafscale.broker.group_coordinator.shards import Shards
from kafscale.broker.group_coordinator.tenures import Tenures
from kafscale.broker.group_coordinator.topic_facts import TopicNames, topic_facts
from kafscale.broker.group_coordinator.writer import GroupWriter
from kafscale.errors import (
    GroupNotFoundError,
    IllegalGenerationError,
    KafscaleError,
    NonEmptyGroupError,
    NotCoordinatorError,
    SubscribedTopicError,
    UnknownApiError,
    UnknownMemberError,
)
from kafscale.groups.committed_offsets import CommittedOffset, expired
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer_protocol import PROTOCOL_TYPE
from kafscale.groups.events import ConsumerHeartbeat, Heartbeat, Join, Leave, Sync, TopicsChanged
from kafscale.groups.model import GroupRecord, Kind, TopicPartition
from kafscale.groups.responses import Alive, Joined, Left, Reconciled, Synced
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema.model import Assignment, Topic
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics

log = get_logger(__name__)

WRITE_SECONDS_MAX: Final = 5.0
"""How long a commit waits for the store, as in Kafka, before the client is told to try again."""

NOT_PROVEN: Final = "it is not proven that we may answer"

EMPTY: Final = "Empty"


class OffsetRetention(msgspec.Struct, frozen=True, kw_only=True):
    """When committed offsets are forgotten."""

    retention_ms: int
    check_interval_ms: int


class Coordinator:
    """All consumer groups of our shards, as the handlers see them."""

    def __init__(
        self,
        store: MetadataStore,
        catalog: Catalog,
        settings: GroupSettings,
        retention: OffsetRetention,
        metrics: Metrics,
        *,
        linger_ms: int,
        clock: GroupClock,
        random: Random,
        proven: Callable[[], bool] = lambda: True,
    ) -> None:
        self._catalog = catalog
        self._retention = retention
        self._clock = clock
        self._proven = proven
        """Whether nobody else can have been given our shards, as far as our own clock tells."""
        self._tickets = Tickets()
        self._tenures = Tenures(proven)
        self.writer = GroupWriter(store, clock, linger_ms=linger_ms, random=random, lost=self._lose)
        self.directory = GroupDirectory(
            settings,
            self._tenures,
            self._tickets,
            metrics,
            topic_names=TopicNames(catalog.by_id),
            clock=clock,
        )
        self._shards = Shards(store, catalog, self._tenures, self.directory, self.writer)
        self._is_retired = False
        self._topics_told = True

    # --- start and stop -------------------------------------------------------------------------

    async def start(self) -> None:
        """Follow the catalog, which must have been started; there are no shards here yet."""
        self.directory.topics = topic_facts(self._catalog.topics)
        self._catalog.subscribe(self._on_topic)

    async def run(self) -> None:
        """Write, and forget what is old; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.writer.run())
            group.create_task(self._expire())
            group.create_task(self._look_at_clock())

    def retire(self) -> None:
        """Send those who wait elsewhere: this broker is about to stop."""
        self._is_retired = True
        error = NotCoordinatorError("this broker is stopping")
        for hosted in self.directory:
            hosted.send_away(error)

    # --- shards ---------------------------------------------------------------------------------

    @property
    def shards(self) -> Collection[int]:
        """The shards that are served; those that are still being read are not."""
        return {each.shard for each in self._tenures if each.phase is Phase.SERVING}

    def is_coordinator_of(self, group_id: str) -> bool:
        """Whether clients of this group are right here, even if they have to wait a moment."""
        return not self._is_retired and self._tenures.has(group_id)

    async def open_shards(self, guards: Mapping[int, OwnershipGuard]) -> None:
        """Answer for these shards, once everything that the store knows of them is here.

        Meanwhile their clients are told that it is loading. Raises `OperatingError` if the store
        fails; none of them is served then.
        """
        await self._shards.open(guards)

    async def release_shards(self, shards: Collection[int]) -> None:
        """Stop answering for these shards; on return the store knows everything of them.

        It takes as long as the store needs, while `run` runs, or until they are dropped.
        """
        await self._shards.release(shards)

    def drop_shard(self, shard: int) -> None:
        """Stop answering for a shard that is somebody else's: nothing of it is written any more."""
        self._shards.drop([shard])

    def drop_shards(self) -> None:
        """Stop answering for all shards at once, and write nothing any more."""
        self._shards.drop([tenure.shard for tenure in self._tenures])

    def update_guard(self, shard: int, assignment: Assignment) -> None:
        """Take note of a newer assignment; one that names another owner ends our time with it."""
        self._shards.update(shard, assignment)

    # --- members --------------------------------------------------------------------------------

    def join(self, group_id: str, event: Join) -> asyncio.Future[Joined]:
        self._check(group_id)
        return self._happen(self.directory.to_join(group_id, event), event)

    def sync(self, group_id: str, event: Sync) -> asyncio.Future[Synced]:
        return self._happen(self._of_member(group_id), event)

    def heartbeat(self, group_id: str, event: Heartbeat) -> asyncio.Future[Alive]:
        return self._happen(self._of_member(group_id), event)

    def leave(self, group_id: str, event: Leave) -> asyncio.Future[Left]:
        return self._happen(self._of_member(group_id), event)

    def consumer_heartbeat(
        self, group_id: str, event: ConsumerHeartbeat
    ) -> asyncio.Future[Reconciled]:
        self._check(group_id)
        return self._happen(self.directory.to_consume(group_id, event), event)

    # --- groups ---------------------------------------------------------------------------------

    def describe(self, group_id: str) -> GroupRecord:
        return self._found(group_id).record()

    def list(self) -> Sequence[GroupRecord]:
        """All groups of our shards; raise while those are not all known."""
        self._check_not_retired()
        self._tenures.check_all()
        return [hosted.record() for hosted in self.directory]

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, with its offsets."""
        hosted = self._found(group_id)
        if hosted.group.state != EMPTY:
            raise NonEmptyGroupError(f"group {group_id!r} has members")
        self.directory.remove(hosted)
        await hosted.tenure.durable_within(WRITE_SECONDS_MAX)
        log.info("group deleted", group_id=group_id)

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
        """Keep how far a group has read; who awaits it is told when that is in the store.

        Who may commit is judged at once: a client may commit and leave in one breath.
        """
        tenure = self._check(group_id)
        hosted = self.directory.get(group_id)
        if hosted is not None:
            hosted.group.check_commit(member_id, instance_id, generation, self._clock())
            if not version_knows_missing_groups and _speaks_consumer(hosted, member_id):
                raise UnknownApiError(f"group {group_id!r} needs a newer version of OffsetCommit")
        elif generation < 0 and offsets:
            hosted = self.directory.classic(group_id)
        elif generation < 0:
            return tenure.durable_within(WRITE_SECONDS_MAX)
        elif version_knows_missing_groups:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        else:
            raise IllegalGenerationError(f"Group {group_id} not found.")
        hosted.offsets.commit(offsets)
        hosted.commit_counted()
        return tenure.durable_within(WRITE_SECONDS_MAX)

    def fetch(
        self, group_id: str, member_id: str | None, member_epoch: int
    ) -> Mapping[TopicPartition, CommittedOffset]:
        """How far a group has read: nothing, for one that nobody knows, whoever asks."""
        self._check(group_id)
        hosted = self.directory.get(group_id)
        if hosted is None:
            return {}
        hosted.group.check_fetch(member_id, member_epoch)
        return hosted.offsets.committed

    async def delete_offsets(
        self, group_id: str, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KafscaleError | None]:
        """Forget how far a group has read these; not so where its members still read them.

        What members read is known of consumers alone: others have to leave first.
        """
        hosted = self._found(group_id)
        if hosted.group.member_count and not _is_of_consumers(hosted.record()):
            raise NonEmptyGroupError(f"group {group_id!r} has members that are no consumers")
        answers: dict[TopicPartition, KafscaleError | None] = {
            place: SubscribedTopicError(f"members of group {group_id!r} read topic {place[0]!r}")
            if hosted.group.subscribes_to(place[0])
            else None
            for place in places
        }
        hosted.offsets.forget([place for place, error in answers.items() if error is None])
        await hosted.tenure.durable_within(WRITE_SECONDS_MAX)
        return answers

    # --- what happens by itself -----------------------------------------------------------------

    async def _look_at_clock(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._proven():
                self._clock.go_on(NOT_PROVEN)
            else:
                self._clock.stop(NOT_PROVEN)

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(self._retention.check_interval_ms / 1000)
            self.expire_offsets()

    def expire_offsets(self) -> None:
        """Forget offsets that are too old, and empty groups that have none left."""
        for hosted in self.directory:
            record = hosted.record()
            is_empty = record.state == EMPTY
            old = tuple(
                expired(
                    hosted.offsets.newest,
                    now_ms=self._clock() + self._clock.skew_ms,
                    retention_ms=self._retention.retention_ms,
                    empty_since_ms=record.state_since_ms
                    if is_empty and record.protocol_type
                    else None,
                    is_read=_nobody_reads if is_empty else hosted.group.subscribes_to,
                )
            )
            if old:
                log.info("offsets expired", group_id=record.group_id, count=len(old))
                hosted.offsets.forget(old)
            if is_empty and not hosted.offsets.newest:
                self.directory.remove(hosted)

    def _on_topic(self, before: Topic | None, after: Topic | None) -> None:
        if after is None:
            assert before is not None
            self._forget_topic(before)
        if self._topics_told:
            self._topics_told = False
            asyncio.get_running_loop().call_soon(self._tell_topics)

    def _forget_topic(self, topic: Topic) -> None:
        for hosted in self.directory:
            # A shard that has just come may know of a newer topic of that name than we do.
            places = [
                place
                for place, committed in hosted.offsets.newest.items()
                if place[0] == topic.name and committed.is_of(topic.id)
            ]
            if places:
                hosted.offsets.forget(places)

    def _tell_topics(self) -> None:
        """Tell consumer groups of all changes since they were told last."""
        self._topics_told = True
        self.directory.topics = topic_facts(self._catalog.topics)
        for hosted in self.directory:
            if hosted.group.kind is Kind.CONSUMER:
                hosted.happen(TopicsChanged(topics=self.directory.topics))

    # --- inside ---------------------------------------------------------------------------------

    def _happen(
        self, hosted: HostedGroup, event: Join | Sync | Heartbeat | Leave | ConsumerHeartbeat
    ) -> "asyncio.Future[Any]":
        ticket, answer = self._tickets.issue()
        hosted.happen(msgspec.structs.replace(event, ticket=ticket))
        self.directory.settle_kind(hosted)
        self.directory.drop_void(hosted)
        return answer

    def _of_member(self, group_id: str) -> HostedGroup:
        self._check(group_id)
        hosted = self.directory.get(group_id)
        if hosted is None:
            raise UnknownMemberError(f"Group {group_id} not found.")
        return hosted

    def _found(self, group_id: str) -> HostedGroup:
        self._check(group_id)
        hosted = self.directory.get(group_id)
        if hosted is None:
            raise GroupNotFoundError(f"Group {group_id} not found.")
        return hosted

    def _lose(self, tenure: Tenure) -> None:
        self._shards.lose(tenure)

    def _check(self, group_id: str) -> Tenure:
        """The tenure in which we answer for a group; raise if we do not, or not yet."""
        self._check_not_retired()
        return self._tenures.check(group_id)

    def _check_not_retired(self) -> None:
        if self._is_retired:
            raise NotCoordinatorError("this broker is stopping")


def _speaks_consumer(hosted: HostedGroup, member_id: str) -> bool:
    """Whether a member speaks the newer protocol; nobody does who is no member."""
    if hosted.group.kind is Kind.CLASSIC:
        return False
    member = hosted.record().members.get(member_id)
    return member is not None and not member.is_classic


def _is_of_consumers(record: GroupRecord) -> bool:
    return record.kind is Kind.CONSUMER or record.protocol_type == PROTOCOL_TYPE


def _nobody_reads(_topic: str) -> bool:
    return False
