"""The committed offsets of one group: what readers are told, and what is on its way to the store.

The law: an offset is told to readers once it is in the store, never before; what was committed last
wins, however often the store had to be asked.
"""

from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType

from kafscale.broker.group_coordinator.shard_session import Tenure
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import TopicPartition
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_offset
from kafscale.metadata.store.base import Delete, Operation, Put


class GroupOffsets:
    """How far one group has read."""

    def __init__(self, group_id: str, tenure: Tenure) -> None:
        self._group_id = group_id
        self._tenure = tenure
        self._newest: dict[TopicPartition, CommittedOffset] = {}
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self.committed: Mapping[TopicPartition, CommittedOffset] = MappingProxyType(self._committed)
        """What is in the store."""
        self.newest: Mapping[TopicPartition, CommittedOffset] = MappingProxyType(self._newest)
        """What will be, once everything is written."""

    def restore(self, place: TopicPartition, committed: CommittedOffset) -> None:
        """Take over what was found in the store."""
        self._newest[place] = self._committed[place] = committed

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        self._newest.update(offsets)
        self._write(offsets)
        self._tenure.when_durable(partial(self._committed.update, offsets))

    def forget(self, places: Collection[TopicPartition]) -> None:
        for place in places:
            self._newest.pop(place, None)
        self._write(places)
        self._tenure.when_durable(partial(self._uncommit, places))

    def _uncommit(self, places: Collection[TopicPartition]) -> None:
        for place in places:
            self._committed.pop(place, None)

    def _write(self, places: Collection[TopicPartition]) -> None:
        self._tenure.write({self._key(place): partial(self._operation, place) for place in places})

    def _operation(self, place: TopicPartition) -> Operation:
        newest = self._newest.get(place)
        key = self._key(place)
        return Put(key, encode_offset(newest)) if newest else Delete(key)

    def _key(self, place: TopicPartition) -> str:
        return keys.committed_offset(self._group_id, *place)
