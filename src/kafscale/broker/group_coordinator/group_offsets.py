"""`GroupOffsets`: the offsets of one group: committed ones, and those pending in transactions.

Invariants:

1. An offset is readable once it is in the store, never before. The last commit wins, however often
   the write is retried.
2. The pending offsets of a producer's transaction are one record. What its marker commits becomes
   readable at once, and survives a crash as a whole: either the offsets are written and the record
   is deleted in one commit of the store; or, if that is too large, first the record is marked as
   committed, which the loader completes, then the offsets are written, then it is deleted.
3. Commits have numbers while the group has transactions. As in Kafka, of the offsets of one
   partition the one that was sent last counts, in a transaction that is committed or in none.
4. While a partition has pending offsets, its committed offset is unstable, and does not expire.
   Deleting offsets deletes pending ones, too.
"""

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace

from kafscale.broker.group_coordinator.open_transactions import OpenTransaction, OpenTransactions
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.shards.writer import fit_together
from kafscale.errors import OffsetMetadataTooLargeError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_offset, encode_pending_offsets
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.text.topic_partition import TopicPartition


class _Phase(enum.Enum):
    """The phase of a transaction in one group."""

    OPEN = "open"
    """There is no marker yet."""
    ENDING = "ending"
    """The offsets and the deletion of the record are being written, in one commit of the store."""
    DECIDING = "deciding"
    """The record is being marked as committed."""
    APPLYING = "applying"
    """The record is marked as committed; the offsets are being written."""


class _Transaction:
    """A transaction that the group has a record of."""

    __slots__ = ("pending", "phase")

    def __init__(self, pending: PendingOffsets) -> None:
        self.pending = pending
        self.phase = _Phase.OPEN


class GroupOffsets:
    """The offsets of one group: those in the store, and those being written."""

    def __init__(
        self, group_id: str, session: ShardSession, open_transactions: OpenTransactions
    ) -> None:
        self.group_id = group_id
        self._session = session
        self._open_transactions = open_transactions
        self._newest: dict[TopicPartition, CommittedOffset] = {}
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self._transactions: dict[int, _Transaction] = {}
        """By producer id."""
        self._last_number = 0
        self.committed: Mapping[TopicPartition, CommittedOffset] = MappingProxyType(self._committed)
        """Offsets in the store."""
        self.newest: Mapping[TopicPartition, CommittedOffset] = MappingProxyType(self._newest)
        """Offsets once everything is written."""

    @property
    def is_empty(self) -> bool:
        """Whether there are neither offsets nor transactions."""
        return not self._newest and not self._transactions

    def restore(self, topic_partition: TopicPartition, committed: CommittedOffset) -> None:
        """Take over an offset that was loaded from the store."""
        self._newest[topic_partition] = self._committed[topic_partition] = committed
        self._last_number = max(self._last_number, committed.commit_number)

    def restore_pending(self, pending: PendingOffsets) -> None:
        """Take over the record of a transaction that was loaded, after all committed offsets."""
        transaction = self._add(pending)
        numbers = [committed.commit_number for committed in pending.offsets.values()]
        self._last_number = max(self._last_number, *numbers, 0)
        if pending.is_committed:
            transaction.phase = _Phase.DECIDING
            newer = self._newer_than_committed(pending)
            self._newest.update(newer)
            self._on_decided(transaction, newer)

    def close(self) -> None:
        """Forget the group, which is not served here any more; the store keeps everything."""
        for producer_id in self._transactions:
            self._open_transactions.discard(self._session.shard, producer_id, self)

    # --- commits --------------------------------------------------------------------------------

    def check_metadata(
        self,
        offsets: Mapping[TopicPartition, CommittedOffset],
        bytes_max: int,
        producer_id: int | None = None,
    ) -> None:
        """Raise if a commit would add metadata to a group that has too much then.

        `producer_id` is for a commit in a transaction.
        """
        if not any(committed.metadata for committed in offsets.values()):
            return
        all_offsets: dict[int | None, Mapping[TopicPartition, CommittedOffset]]
        all_offsets = {id_: each.pending.offsets for id_, each in self._transactions.items()}
        all_offsets[None] = self._newest
        before = _metadata_bytes(all_offsets.values())
        all_offsets[producer_id] = {**all_offsets.get(producer_id, {}), **offsets}
        after = _metadata_bytes(all_offsets.values())
        if after > max(before, bytes_max):
            raise OffsetMetadataTooLargeError(
                f"the offset metadata of the group would have {after} bytes, limit {bytes_max}"
            )

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        if self._transactions:
            offsets = self._numbered(offsets)
        # Encoded before anything changes: if that fails, only this commit does.
        self._session.write(self._puts(offsets))
        self._newest.update(offsets)
        self._session.when_durable(partial(self._committed.update, offsets))

    def delete(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Delete the committed offsets of partitions."""
        for topic_partition in topic_partitions:
            self._newest.pop(topic_partition, None)
        self._session.write({(key := self._key(each)): Delete(key) for each in topic_partitions})
        self._session.when_durable(partial(self._uncommit, topic_partitions))

    def delete_all(self) -> None:
        """Delete everything; the group is deleted."""
        self.close()
        for producer_id in self._transactions:
            key = self._pending_key(producer_id)
            self._session.write({key: Delete(key)})
        self._transactions.clear()
        self.delete(tuple(self._newest))

    # --- transactions ---------------------------------------------------------------------------

    @property
    def in_transactions(self) -> Collection[TopicPartition]:
        """The partitions with offsets in transactions that have a record."""
        return _partitions(self._transactions.values())

    @property
    def unstable(self) -> Collection[TopicPartition]:
        """Those of them of which it is not known yet whether they are committed."""
        transactions = self._transactions.values()
        return _partitions(each for each in transactions if each.phase is not _Phase.APPLYING)

    def open_transaction(self, producer_id: int) -> OpenTransaction | None:
        """The transaction of a producer, before its marker."""
        found = self._transactions.get(producer_id)
        if found is None or found.phase is not _Phase.OPEN:
            return None
        return OpenTransaction(producer_id, found.pending.producer_epoch, found.pending.started_ms)

    def is_ending(self, producer_id: int) -> bool:
        """Whether what a marker has committed is being written: the next offsets have to wait."""
        found = self._transactions.get(producer_id)
        return found is not None and found.phase is not _Phase.OPEN

    def commit_in_transaction(
        self,
        producer_id: int,
        epoch: int,
        offsets: Mapping[TopicPartition, CommittedOffset],
        now_ms: int,
    ) -> None:
        """Add offsets to the transaction of a producer, in which none is being written."""
        assert not self.is_ending(producer_id), producer_id
        found = self._transactions.get(producer_id)
        pending = PendingOffsets(
            producer_id=producer_id,
            producer_epoch=epoch,
            started_ms=found.pending.started_ms if found else now_ms,
            offsets={**(found.pending.offsets if found else {}), **self._numbered(offsets)},
        )
        put = self._pending_put(pending)
        if not fit_together([put]):
            raise OffsetMetadataTooLargeError(
                f"the transaction would have {len(put.value)} bytes of offsets of the group"
            )
        self._session.write({put.key: put})
        if found is None:
            self._add(pending)
        else:
            found.pending = pending

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Commit or drop the offsets of a producer; has no effect if that has been done before."""
        found = self._transactions.get(producer_id)
        if found is None or found.phase is not _Phase.OPEN:
            return
        if not is_commit:
            self._delete_record(found)
            return
        newer = self._newer_than_committed(found.pending)
        delete = Delete(self._pending_key(producer_id))
        # The record comes last: it is still there if they do not fit together any more, because of
        # later commits of the same partitions, and the store fails in between.
        together: dict[str, Operation] = {**self._puts(newer), delete.key: delete}
        if fit_together(together.values()) and self._session.write_together(together):
            found.phase = _Phase.ENDING
            on_durable = partial(self._on_ended, found, newer)
        else:
            found.phase = _Phase.DECIDING
            found.pending = replace(found.pending, is_committed=True)
            put = self._pending_put(found.pending)
            self._session.write({put.key: put})
            on_durable = partial(self._on_decided, found, newer)
        self._newest.update(newer)
        self._session.when_durable(on_durable)

    def delete_pending(self, matches: Callable[[TopicPartition, CommittedOffset], bool]) -> None:
        """Delete the offsets in transactions that match."""
        for transaction in list(self._transactions.values()):
            before = transaction.pending.offsets
            kept = {each: before[each] for each in before if not matches(each, before[each])}
            if len(kept) == len(before):
                continue
            transaction.pending = replace(transaction.pending, offsets=kept)
            if not kept and transaction.phase is _Phase.OPEN:
                self._delete_record(transaction)
            elif transaction.phase is not _Phase.ENDING:  # Then it is about to be deleted.
                put = self._pending_put(transaction.pending)
                self._session.write({put.key: put})

    def _on_ended(
        self, transaction: _Transaction, newer: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Everything is written."""
        self._committed.update(newer)
        self._remove(transaction)

    def _on_decided(
        self, transaction: _Transaction, newer: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """The record is marked as committed."""
        self._committed.update(newer)
        if not self._has(transaction):
            return
        transaction.phase = _Phase.APPLYING
        # Those that were committed or deleted since are written as such.
        current = {each: newer[each] for each in newer if self._newest.get(each) is newer[each]}
        self._session.write(self._puts(current))
        self._session.when_durable(partial(self._on_applied, transaction))

    def _on_applied(self, transaction: _Transaction) -> None:
        """The offsets have their own records."""
        if self._has(transaction):
            self._delete_record(transaction)

    # --- internals ------------------------------------------------------------------------------

    def _add(self, pending: PendingOffsets) -> _Transaction:
        transaction = self._transactions[pending.producer_id] = _Transaction(pending)
        self._open_transactions.add(self._session.shard, pending.producer_id, self)
        return transaction

    def _has(self, transaction: _Transaction) -> bool:
        return self._transactions.get(transaction.pending.producer_id) is transaction

    def _remove(self, transaction: _Transaction) -> None:
        if self._has(transaction):
            producer_id = transaction.pending.producer_id
            del self._transactions[producer_id]
            self._open_transactions.discard(self._session.shard, producer_id, self)

    def _delete_record(self, transaction: _Transaction) -> None:
        key = self._pending_key(transaction.pending.producer_id)
        self._session.write({key: Delete(key)})
        self._remove(transaction)

    def _newer_than_committed(
        self, pending: PendingOffsets
    ) -> dict[TopicPartition, CommittedOffset]:
        """The pending offsets without those that were committed again since."""
        return {
            topic_partition: offset
            for topic_partition, offset in pending.offsets.items()
            if (newest := self._newest.get(topic_partition)) is None
            or offset.commit_number > newest.commit_number
        }

    def _numbered(
        self, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, CommittedOffset]:
        self._last_number += 1
        return {
            topic_partition: replace(offset, commit_number=self._last_number)
            for topic_partition, offset in offsets.items()
        }

    def _uncommit(self, topic_partitions: Iterable[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            self._committed.pop(topic_partition, None)

    def _puts(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[str, Put]:
        return {
            (key := self._key(topic_partition)): Put(key, encode_offset(committed))
            for topic_partition, committed in offsets.items()
        }

    def _pending_put(self, pending: PendingOffsets) -> Put:
        return Put(self._pending_key(pending.producer_id), encode_pending_offsets(pending))

    def _key(self, topic_partition: TopicPartition) -> str:
        return keys.committed_offset(self.group_id, *topic_partition)

    def _pending_key(self, producer_id: int) -> str:
        return keys.pending_offsets(self.group_id, producer_id)


def _partitions(transactions: Iterable[_Transaction]) -> set[TopicPartition]:
    return {partition for each in transactions for partition in each.pending.offsets}


def _metadata_bytes(all_offsets: Iterable[Mapping[TopicPartition, CommittedOffset]]) -> int:
    return sum(
        len(committed.metadata.encode())
        for offsets in all_offsets
        for committed in offsets.values()
    )
