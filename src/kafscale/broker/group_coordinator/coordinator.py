"""The group coordinator: the entry point of all requests that concern consumer groups.

Invariants: events of groups are handled here, in one event loop, without awaits in between;
requests that have to wait hold a reply token. An offset commit is answered once it is in the store.
What was acknowledged survives this process, and so do members: those that return in time find their
group unchanged, on this broker or on the next owner of its shard. Groups of other shards are
unknown here.

`offset_coordinator` has what concerns offsets, `groups` the state machines; `broker.shards` opens
and releases shards, and the handlers decode and encode the requests.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from kafscale.broker.group_coordinator import loader
from kafscale.broker.group_coordinator.group_registry import GroupRegistry, topic_infos
from kafscale.broker.group_coordinator.group_runtime import GroupRuntime, OffsetSettings
from kafscale.broker.group_coordinator.offset_coordinator import EMPTY, OffsetCoordinator
from kafscale.broker.group_coordinator.shard_logs import ShardLogs
from kafscale.broker.shards.pausable_clock import POLL_SECONDS
from kafscale.broker.shards.pending_replies import PendingReplies
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.shards.shards import Shards
from kafscale.errors import NonEmptyGroupError, NotCoordinatorError, UnknownMemberError
from kafscale.groups.effects import Alive, Joined, Left, Reconciled, Synced
from kafscale.groups.events import ConsumerHeartbeat, Heartbeat, Join, Leave, Sync, TopicsChanged
from kafscale.groups.group import GroupSettings
from kafscale.groups.model import GroupRecord, GroupType
from kafscale.metadata.schema.model import Topic
from kafscale.metadata.topics.store import TopicStore
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.broker import Metrics

logger = get_logger(__name__)

LEASE_NOT_VALID: Final = "the broker's lease is not valid"


class Coordinator(OffsetCoordinator):
    """All consumer groups of this broker's shards, as the handlers see them."""

    def __init__(
        self,
        shards: Shards,
        topic_store: TopicStore,
        settings: GroupSettings,
        offset_settings: OffsetSettings,
        metrics: Metrics,
    ) -> None:
        self._topic_store = topic_store
        self._store = shards.store
        self._lease_is_valid = shards.lease_is_valid
        self._pending_replies = PendingReplies()
        registry = GroupRegistry(
            settings,
            shards.sessions,
            self._pending_replies,
            metrics,
            topic_store=topic_store,
            clock=shards.clock,
        )
        super().__init__(registry, shards.sessions, shards.clock, offset_settings)
        shards.add_content(self)
        self.logs = ShardLogs(
            shards.store, self._sessions, lambda: self._clock() + self._clock.skew_ms
        )
        self._topics_current = True

    # --- start and stop -------------------------------------------------------------------------

    async def start(self) -> None:
        """Follow the topic store, which must have been started; there are no shards yet."""
        self.registry.topics = topic_infos(self._topic_store.visible)
        self._topic_store.subscribe(self._on_topic)
        self._topic_store.internal.subscribe(self._on_topic)

    async def run(self) -> None:
        """Expire offsets, and follow the lease; cancel it to stop."""
        async with asyncio.TaskGroup() as group:
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

    async def load(self, shards: Collection[int]) -> Callable[[Collection[int]], None]:
        """Read the groups of these shards; the result restores those that are still wanted."""
        loaded = await loader.read(self._store, shards, self._topic_store.visible)

        def restore(current: Collection[int]) -> None:
            loader.restore(loaded, self.registry, current, self._topic_store.visible)

        return restore

    def unload(self, sessions: Collection[ShardSession], error: NotCoordinatorError) -> None:
        """Forget the groups of these sessions, and fail their pending requests."""
        ended = set(sessions)
        for runtime in self.registry:
            if runtime.session in ended:
                runtime.abort(error)
                self.registry.unload(runtime)
        self.registry.open_transactions.on_unloaded({session.shard for session in ended})

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
        await runtime.session.wait_durable()
        logger.info("group deleted", group_id=group_id)

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

    def _on_topic(self, before: Topic | None, after: Topic | None) -> None:
        if after is None:
            assert before is not None
            self._delete_topic_offsets(before)
        if self._topics_current:
            self._topics_current = False
            asyncio.get_running_loop().call_soon(self._notify_groups)

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
