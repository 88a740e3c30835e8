"""`PendingTransaction`: what a transaction commits in one group, and its records in the store.

A commit in a transaction adds a part: a record of its own, with the offsets of that commit only, so
that it costs what it adds, however many offsets the transaction has. Once the parts have twice the
size that they had when they were last written together, the next commit writes all offsets again,
in as few parts as possible, and deletes the others. So all of that takes at most about twice the
bytes of the commits, and what is stored is bounded, however often a partition is committed.

Invariants: a part is written once, and deleted once. The parts that are in the store at any time
have all offsets that were acknowledged: those that replace others are written before the others are
deleted. The record of the decision (number 0) outlives the parts, so that a crash leaves no part of
a committed transaction that looks like an open one.
"""

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kafscale.broker.group_coordinator.commit_limits import OFFSET_BYTES
from kafscale.broker.shards.writer import fit_together
from kafscale.errors import OffsetMetadataTooLargeError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_pending_offsets
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, Delete, Put
from kafscale.text.topic_partition import TopicPartition

DECISION: Final = 0
"""The number of the record that the transaction is committed; parts have higher ones."""

PART_BYTES: Final = 200
"""What a part takes in etcd besides its value."""

MERGED_BYTES_MIN: Final = 8192
"""Parts are not merged below this size: a few dozen of them, which one commit deletes."""

MERGED_BYTES_MAX: Final = COMMIT_BYTES_MAX // 2
"""More offsets are merged into several parts."""

Offsets = dict[TopicPartition, CommittedOffset]


class Phase(enum.Enum):
    """The phase of a transaction in one group."""

    OPEN = "open"
    """There is no marker yet."""
    ENDING = "ending"
    """The offsets and the deletion of the parts are being written, in one commit of the store."""
    DECIDING = "deciding"
    """The decision is being written."""
    APPLYING = "applying"
    """The decision is in the store; the offsets are being written."""


class PendingTransaction:
    """A transaction that the group has records of."""

    __slots__ = ("_bytes_max", "_group_id", "_next_number", "_parts", "pending", "phase")

    def __init__(
        self,
        group_id: str,
        pending: PendingOffsets,
        next_number: Callable[[], int],
        parts: Mapping[int, int] = {},
    ) -> None:
        """`parts` are the sizes of the parts that the store has, by number."""
        self._group_id = group_id
        self._next_number = next_number
        self._parts = dict(parts)
        self._bytes_max = max(2 * sum(self._parts.values()), MERGED_BYTES_MIN)
        self.pending = pending
        """All offsets of the transaction."""
        self.phase = Phase.OPEN

    def add(self, number: int, epoch: int, offsets: Offsets) -> dict[str, Put | Delete]:
        """Add the offsets of a commit; returns what to write, in this order."""
        pending = replace(self.pending, producer_epoch=epoch, offsets=offsets)
        put = self._put(number, pending)
        if not fit_together([put]):
            raise OffsetMetadataTooLargeError(
                f"the commit has {len(put.value)} bytes of offsets of the group"
            )
        size_bytes = PART_BYTES + len(put.value)
        if self._parts and sum(self._parts.values()) + size_bytes > self._bytes_max:
            return self.replace_all({**self.pending.offsets, **offsets}, epoch)
        self.pending.producer_epoch = epoch
        self.pending.offsets.update(offsets)
        self._parts[number] = size_bytes
        self._bytes_max = max(self._bytes_max, 2 * size_bytes)
        return {put.key: put}

    def replace_all(self, offsets: Offsets, epoch: int | None = None) -> dict[str, Put | Delete]:
        """Replace all offsets; returns what to write, in this order."""
        pending = replace(self.pending, offsets=offsets, is_committed=False)
        if epoch is not None:
            pending.producer_epoch = epoch
        puts = {
            (number := self._next_number()): self._put(number, replace(pending, offsets=part))
            for part in _parts_of(offsets)
        }
        operations: dict[str, Put | Delete] = {put.key: put for put in puts.values()}
        operations |= self._part_deletes()
        self.pending = pending
        self._parts = {number: PART_BYTES + len(put.value) for number, put in puts.items()}
        self._bytes_max = max(2 * sum(self._parts.values()), MERGED_BYTES_MIN)
        return operations

    def decision(self) -> Put:
        """The record that the transaction is committed."""
        return self._put(DECISION, replace(self.pending, offsets={}, is_committed=True))

    def deletes(self) -> dict[str, Delete]:
        """Deletes all records, in this order."""
        deletes = self._part_deletes()
        if self.phase in {Phase.DECIDING, Phase.APPLYING}:
            key = self._key(DECISION)
            deletes[key] = Delete(key)
        return deletes

    def _part_deletes(self) -> dict[str, Delete]:
        return {(key := self._key(number)): Delete(key) for number in self._parts}

    def _put(self, number: int, pending: PendingOffsets) -> Put:
        return Put(self._key(number), encode_pending_offsets(pending))

    def _key(self, number: int) -> str:
        return keys.pending_offsets(self._group_id, self.pending.producer_id, number)


def _parts_of(offsets: Offsets) -> Iterator[Offsets]:
    """Parts that fit into a record of the store."""
    part: Offsets = {}
    size_bytes = 0
    for topic_partition, committed in offsets.items():
        added_bytes = OFFSET_BYTES + len(topic_partition[0]) + len(committed.metadata.encode())
        if part and size_bytes + added_bytes > MERGED_BYTES_MAX:
            yield part
            part, size_bytes = {}, 0
        part[topic_partition] = committed
        size_bytes += added_bytes
    if part:
        yield part
