"""`PartitionStateStore`: loads and saves the states of the partitions that this broker owns.

Invariant: a partition state is saved in a transaction with an ownership guard; a broker that has
lost the partition gets `FencedError`. The last state that was read or written is cached, because
only the owner writes it: a save needs no read. States of a partition are saved one after the other,
each as of when its turn comes, so that a saved offset never moves back.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from kafscale.errors import NotOwnerError
from kafscale.metadata.cluster import partition_states
from kafscale.metadata.cluster.ownership_guard import OwnershipGuards
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import PartitionState, SegmentInfo, Topic
from kafscale.metadata.schema.topic_codec import SEGMENTS_MAX
from kafscale.metadata.store.base import MetadataStore
from kafscale.metadata.topics.store import TopicStore
from kafscale.storage.formats import object_keys
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.text.topic_partition import TopicPartition

UNKNOWN_TIMESTAMP_MS: Final = -1


class PartitionStateStore:
    """Loads and saves the states of the partitions that this broker owns."""

    def __init__(
        self,
        store: MetadataStore,
        topic_store: TopicStore,
        guards: OwnershipGuards,
        *,
        clock: Callable[[], int],
    ) -> None:
        self._store = store
        self._topic_store = topic_store
        self._guards = guards
        self._clock = clock
        self._states: dict[TopicPartition, PartitionState] = {}
        self._turns: dict[TopicPartition, asyncio.Lock] = {}
        """Held while the state of a partition is saved."""

    def forget(self, topic_partition: TopicPartition) -> None:
        """Drop the cached state of a partition that this broker no longer owns."""
        self._states.pop(topic_partition, None)
        self._turns.pop(topic_partition, None)

    def clear(self) -> None:
        """Drop all cached states."""
        self._states.clear()
        self._turns.clear()

    async def load(self, topic: Topic, partitions: Iterable[int]) -> dict[int, PartitionState]:
        """Load the stored states of these partitions; those that were never saved are missing."""
        desired = set(partitions)
        states = await partition_states.load(self._store, topic)
        selected = {number: state for number, state in states.items() if number in desired}
        self._states |= {(topic.name, number): state for number, state in selected.items()}
        return selected

    def names_earlier_owner(self, log: PartitionLog) -> bool:
        """Whether a state is stored that this broker has not saved since it owns the partition."""
        state = self._states.get((log.topic, log.partition))
        return (
            state is not None
            and state.topic_id == log.topic_id
            and state.leader_epoch < log.leader_epoch
        )

    async def save(self, log: PartitionLog) -> None:
        """Save the partition's offsets and newest segments, readable without opening the log."""
        async with self._turns.setdefault((log.topic, log.partition), asyncio.Lock()):
            await self._save(log)

    async def _save(self, log: PartitionLog) -> None:
        topic_partition = (log.topic, log.partition)
        topic = self._topic_store.by_id.get(log.topic_id)
        if topic is None:
            return
        guard = self._guards.get(topic_partition)
        if guard is None or guard.assignment.leader_epoch != log.leader_epoch:
            raise NotOwnerError(f"{log.topic}/{log.partition} is no longer owned by this broker")
        before = self._states.get(topic_partition)
        if before is not None and before.topic_id != log.topic_id:
            before = None
        state = PartitionState(
            topic=log.topic,
            topic_id=log.topic_id,
            partition=log.partition,
            leader_broker=keys.broker_name(guard.assignment.broker_id),
            leader_epoch=log.leader_epoch,
            log_start_offset=log.start_offset,
            log_end_offset=log.end_offset,
            high_watermark=log.high_watermark,
            segments=self._segments(log, before),
            active_segment=_newest_name(log),
            segment_count=len(log.segments),
            size_bytes=log.segments.total_bytes,
            # Damaged segments at the end hold offsets that must not be used again.
            rolled_offset=max(log.tail.rolled_offset, log.saved_offset),
            mod_revision=before.mod_revision if before else 0,
        )
        self._states[topic_partition] = await partition_states.save(
            self._store, topic, state, guard
        )

    def _segments(
        self, log: PartitionLog, before: PartitionState | None
    ) -> tuple[SegmentInfo, ...]:
        """The newest segments; the cached entry of an unchanged segment is reused."""
        known = {info.base_offset: info for info in before.segments} if before else {}
        newest = len(log.segments) - 1
        return tuple(
            self._info(
                log,
                segment.base_offset,
                segment.next_offset,
                segment.size_bytes,
                known.get(segment.base_offset),
                is_newest=number == newest,
            )
            for number, segment in log.segments.newest(SEGMENTS_MAX)
        )

    def _info(
        self,
        log: PartitionLog,
        base_offset: int,
        next_offset: int,
        size_bytes: int,
        known: SegmentInfo | None,
        *,
        is_newest: bool,
    ) -> SegmentInfo:
        if known is not None and known.size_bytes == size_bytes:
            return known
        return SegmentInfo(
            base_offset=base_offset,
            size_bytes=size_bytes,
            created_ms=self._clock(),
            last_offset=next_offset - 1,
            max_timestamp_ms=log.segment_max_timestamp_ms if is_newest else UNKNOWN_TIMESTAMP_MS,
        )


def _newest_name(log: PartitionLog) -> str:
    """The name of the newest segment's object, without its directory."""
    if not len(log.segments):
        return ""
    return object_keys.segment_name(log.segments[-1].base_offset)
