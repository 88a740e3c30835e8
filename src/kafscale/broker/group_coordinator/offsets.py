"""The committed offsets of one group: those in the store, and those being written.

Invariants: an offset is readable once it is in the store, never before. The last commit wins,
however often the write is retried.
"""

from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType

from kafscale.broker.group_coordinator.shard_session import ShardSession
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_offset
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.text.topic_partition import TopicPartition


class GroupOffsets:
    """The committed offsets of one group."""

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

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._newest.update(offsets)
        self._write(offsets)
        self._session.when_durable(partial(self._committed.update, offsets))

    def delete(self, topic_partitions: Collection[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._newest.pop(topic_partition, None)
        self._write(topic_partitions)
        self._session.when_durable(partial(self._uncommit, topic_partitions))

    def _uncommit(self, topic_partitions: Collection[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._committed.pop(topic_partition, None)

    def _write(self, topic_partitions: Collection[TopicPartition]) -> None:
        self._session.write(
            {
                self._key(topic_partition): partial(self._operation, topic_partition)
                for topic_partition in topic_partitions
            }
        )

    def _operation(self, topic_partition: TopicPartition) -> Operation:
        newest = self._newest.get(topic_partition)
        key = self._key(topic_partition)
        return Put(key, encode_offset(newest)) if newest else Delete(key)

    def _key(self, topic_partition: TopicPartition) -> str:
        return keys.committed_offset(self._group_id, *topic_partition)
