"""The runtime of one group: its state machine, its pending replies, its offsets and its timer.

Invariants: an event is handled atomically, and its effects are executed in order. The timer may
fire early, never late: a heartbeat moves a deadline, but not the timer.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import count
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from kafscale.broker.group_coordinator.pausable_clock import GroupClock
from kafscale.broker.group_coordinator.shard_session import ShardSession
from kafscale.errors import KafscaleError, OffsetMetadataTooLargeError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.effects import Effect, Rebalanced, Reply, Response, Save
from kafscale.groups.events import ConsumerHeartbeat, Event, Heartbeat, Tick
from kafscale.groups.group import Group
from kafscale.groups.model import GroupRecord
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_offset
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import GroupCounters
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

TIMER_MS_MIN = 10
"""A paused clock must not make the timer fire in a busy loop."""


class PendingReplies:
    """Futures of the requests that wait for a group, by reply token.

    A response is delivered once; it is dropped if the client has disconnected.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._futures: dict[int, asyncio.Future[Any]] = {}

    def create(self) -> tuple[int, asyncio.Future[Any]]:
        """A new reply token, and the future of its response."""
        reply_token = next(self._numbers)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[reply_token] = future
        return reply_token, future

    def resolve(self, reply_token: int, response: Response | KafscaleError) -> None:
        future = self._futures.pop(reply_token, None)
        if future is None or future.done():
            return
        if isinstance(response, KafscaleError):
            future.set_exception(response)
        else:
            future.set_result(response)


class OffsetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """When committed offsets expire, and how large they may be."""

    retention_ms: int
    check_interval_ms: int
    group_metadata_bytes_max: int
    """Of all offsets of a group together."""


class GroupOffsets:
    """The committed offsets of one group: those in the store, and those being written.

    An offset is readable once it is in the store, never before. The last commit wins, however often
    the write is retried.
    """

    def __init__(self, group_id: str, session: ShardSession) -> None:
        self._group_id = group_id
        self._session = session
        self._newest: dict[TopicPartition, CommittedOffset] = {}
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self.committed: Mapping[TopicPartition, CommittedOffset] = MappingProxyType(self._committed)
        """Offsets in the store."""
        self.newest: Mapping[TopicPartition, CommittedOffset] = MappingProxyType(self._newest)
        """Offsets once everything is written."""

    def restore(self, topic_partition: TopicPartition, committed: CommittedOffset) -> None:
        """Take over an offset that was loaded from the store."""
        self._newest[topic_partition] = self._committed[topic_partition] = committed

    def check_metadata(
        self, offsets: Mapping[TopicPartition, CommittedOffset], bytes_max: int
    ) -> None:
        """Raise if a commit would add metadata to a group that has too much then."""
        if not any(committed.metadata for committed in offsets.values()):
            return
        before = _metadata_bytes(self._newest.values())
        after = _metadata_bytes({**self._newest, **offsets}.values())
        if after > max(before, bytes_max):
            raise OffsetMetadataTooLargeError(
                f"the offset metadata of the group would have {after} bytes, limit {bytes_max}"
            )

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        # Encoded before anything changes: if that fails, only this commit does.
        self._session.write(
            {
                (key := self._key(topic_partition)): Put(key, encode_offset(committed))
                for topic_partition, committed in offsets.items()
            }
        )
        self._newest.update(offsets)
        self._session.when_durable(partial(self._committed.update, offsets))

    def delete(self, topic_partitions: Collection[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._newest.pop(topic_partition, None)
        self._session.write({(key := self._key(each)): Delete(key) for each in topic_partitions})
        self._session.when_durable(partial(self._uncommit, topic_partitions))

    def _uncommit(self, topic_partitions: Collection[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._committed.pop(topic_partition, None)

    def _key(self, topic_partition: TopicPartition) -> str:
        return keys.committed_offset(self._group_id, *topic_partition)


class GroupRuntime:
    """Runs one group."""

    def __init__(
        self,
        group: Group,
        session: ShardSession,
        pending_replies: PendingReplies,
        counters: GroupCounters,
        *,
        encode: Callable[[GroupRecord], bytes],
        clock: GroupClock,
    ) -> None:
        self.group = group
        self.session = session
        """The shard session of the group; all its writes carry the session's ownership guard."""
        self.offsets = GroupOffsets(group.group_id, session)
        self.is_saved = False
        """Whether the group's record is in the store, or about to be written."""
        self._pending_replies = pending_replies
        self._counters = counters
        self._encode = encode
        self._clock = clock
        self._key = keys.consumer_group(group.group_id)
        self._timer: asyncio.TimerHandle | None = None
        self._is_deleted = False
        self._schedule_timer()

    @property
    def is_empty(self) -> bool:
        """Whether the group has no record, offsets, members or deadlines."""
        return (
            not self.is_saved
            and not self.offsets.newest
            and not self.group.member_count
            and self.group.deadline_ms is None
        )

    def handle(self, event: Event) -> None:
        """Pass an event to the group, and execute the effects."""
        effects = self.group.handle(event, self._clock())
        self.execute(effects)
        if not _is_plain_heartbeat(event, effects):
            self._schedule_timer()

    def replace_group(self, group: Group) -> None:
        """Continue as a group of the other type; offsets stay."""
        self.group = group
        self.save()
        self._schedule_timer()

    def execute(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(reply_token, response, is_durable=False):
                    self._pending_replies.resolve(reply_token, response)
                case Reply(reply_token, response):
                    resolve = partial(self._pending_replies.resolve, reply_token)
                    self.session.when_durable(partial(resolve, response), on_lost=resolve)
                case Save():
                    self.save()
                case Rebalanced():
                    self._log_rebalance(effect)

    def record(self) -> GroupRecord:
        """The group's record, with wall-clock times."""
        record = self.group.record()
        return replace(record, state_since_ms=record.state_since_ms + self._clock.skew_ms)

    def save(self) -> None:
        self.is_saved = True
        self.session.write({self._key: self._operation})

    def count_commit(self) -> None:
        self._counters.commits += 1

    def delete(self) -> None:
        """Delete everything from the store; the group must not be used any more."""
        self.close()
        self._is_deleted = True
        self.session.write({self._key: self._operation})
        self.offsets.delete(tuple(self.offsets.newest))

    def abort(self, error: KafscaleError) -> None:
        """Fail all pending requests with this error; the group is not served any more."""
        self.close()
        self.execute(self.group.abort(error, self._clock()))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _operation(self) -> Operation:
        if self._is_deleted:
            return Delete(self._key)
        return Put(self._key, self._encode(self.record()))

    def _log_rebalance(self, rebalanced: Rebalanced) -> None:
        self._counters.rebalances += 1
        logger.info(
            "consumer_rebalance",
            group_id=self.group.group_id,
            generation=rebalanced.generation,
            member_count=rebalanced.member_count,
            reason=rebalanced.reason,
        )

    # --- timer ----------------------------------------------------------------------------------

    def _schedule_timer(self) -> None:
        """Make sure that the timer fires no later than the group's deadline."""
        deadline_ms = self.group.deadline_ms
        if deadline_ms is None:
            self.close()
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + max(deadline_ms - self._clock(), TIMER_MS_MIN) / 1000
        if self._timer is None or self._timer.when() > due:
            self.close()
            self._timer = loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.handle(Tick())


def _metadata_bytes(offsets: Iterable[CommittedOffset]) -> int:
    return sum(len(committed.metadata.encode()) for committed in offsets)


def _is_plain_heartbeat(event: Event, effects: list[Effect]) -> bool:
    """Whether the event was a heartbeat without consequences, so that no deadline is earlier."""
    if not isinstance(event, Heartbeat | ConsumerHeartbeat) or len(effects) != 1:
        return False
    reply = effects[0]
    return (
        isinstance(reply, Reply)
        and not reply.is_durable
        and not isinstance(reply.response, KafscaleError)
    )
