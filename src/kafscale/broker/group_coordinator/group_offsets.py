"""`GroupOffsets`: the offsets of one group: committed ones, and those pending in transactions.

Invariants:

1. An offset is readable once it is in the store, never before. The last commit wins, however often
   the write is retried.
2. What the marker of a transaction commits becomes readable at once, and survives a crash as a
   whole: either the offsets are written and the records of the transaction are deleted in one
   commit of the store; or, if that is too large, first the decision is written, which the loader
   completes, then the offsets, and then the records are deleted (`PendingTransaction`).
3. Commits have numbers once the group has had transactions. As in Kafka, of the offsets of one
   partition the one that was sent last counts, in a transaction that is committed or in none.
4. While a partition has pending offsets, its committed offset is unstable, and does not expire.
   Deleting offsets deletes pending ones, too.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace

from kafscale.broker.group_coordinator.open_transactions import OpenTransaction, OpenTransactions
from kafscale.broker.group_coordinator.pending_transaction import PendingTransaction, Phase
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.shards.writer import fit_together
from kafscale.errors import OffsetMetadataTooLargeError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_offset
from kafscale.metadata.store.base import Delete, Operation, Put
from kafscale.text.topic_partition import TopicPartition


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
        self._transactions: dict[int, PendingTransaction] = {}
        """By producer id."""
        self._last_number = 0
        """Of commits and of parts of transactions; 0 if the group never had transactions."""
        self._unstable: frozenset[TopicPartition] | None = None
        """None if it has to be computed."""
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

    def restore_pending(self, pending: PendingOffsets, parts: Mapping[int, int]) -> None:
        """Take over a transaction that was loaded, after all committed offsets.

        `parts` are the sizes of its parts, by number.
        """
        transaction = self._add(pending, parts)
        numbers = [committed.commit_number for committed in pending.offsets.values()]
        self._last_number = max(self._last_number, *numbers, *parts, 0)
        if pending.is_committed:
            transaction.phase = Phase.DECIDING
            newer = self._newer_than_committed(pending)
            self._newest.update(newer)
            self._on_decided(transaction, newer)
        else:
            self._open(transaction)

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
        # Also after the transactions: while the deletion of one is being written, its offsets must
        # not look newer than this commit to the loader.
        if self._last_number:
            offsets = self._numbered(offsets, self._next_number())
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
        for transaction in self._transactions.values():
            self._session.write(transaction.deletes())
        self._transactions.clear()
        self._unstable = None
        self.delete(tuple(self._newest))

    # --- transactions ---------------------------------------------------------------------------

    @property
    def in_transactions(self) -> Collection[TopicPartition]:
        """The partitions with offsets in transactions that have a record."""
        return _partitions(self._transactions.values())

    @property
    def unstable(self) -> Collection[TopicPartition]:
        """Those of them of which it is not known yet whether they are committed."""
        if self._unstable is None:
            transactions = self._transactions.values()
            self._unstable = frozenset(
                _partitions(each for each in transactions if each.phase is not Phase.APPLYING)
            )
        return self._unstable

    def pending_count(self, producer_id: int) -> int:
        """How many offsets the transaction of a producer has."""
        found = self._transactions.get(producer_id)
        return len(found.pending.offsets) if found else 0

    def is_ending(self, producer_id: int) -> bool:
        """Whether what a marker has committed is being written: the next offsets have to wait."""
        found = self._transactions.get(producer_id)
        return found is not None and found.phase is not Phase.OPEN

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
        number = self._next_number()
        transaction = found or self._new(
            PendingOffsets(
                producer_id=producer_id, producer_epoch=epoch, started_ms=now_ms, offsets={}
            )
        )
        operations = transaction.add(number, epoch, self._numbered(offsets, number))
        self._session.write(operations)
        self._transactions[producer_id] = transaction
        self._unstable = None
        self._open(transaction)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Commit or drop the offsets of a producer; has no effect if that has been done before."""
        found = self._transactions.get(producer_id)
        if found is None or found.phase is not Phase.OPEN:
            return
        if not is_commit:
            self._delete_records(found)
            return
        newer = self._newer_than_committed(found.pending)
        self._open_transactions.discard(self._session.shard, producer_id, self)
        # The deletions come last: the records are still there if all do not fit together any more,
        # because of later commits of the same partitions, and the store fails in between.
        together: dict[str, Operation] = {**self._puts(newer), **found.deletes()}
        if fit_together(together.values()) and self._session.write_together(together):
            found.phase = Phase.ENDING
            on_durable = partial(self._on_ended, found, newer)
        else:
            found.phase = Phase.DECIDING
            put = found.decision()
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
            self._unstable = None
            if not kept and transaction.phase is Phase.OPEN:
                self._delete_records(transaction)
            elif transaction.phase is Phase.ENDING:  # Then it is about to be deleted.
                transaction.pending = replace(transaction.pending, offsets=kept)
            else:
                self._session.write(transaction.replace_all(kept))

    def _on_ended(
        self, transaction: PendingTransaction, newer: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """Everything is written."""
        self._committed.update(newer)
        self._remove(transaction)

    def _on_decided(
        self, transaction: PendingTransaction, newer: Mapping[TopicPartition, CommittedOffset]
    ) -> None:
        """The decision is in the store."""
        self._committed.update(newer)
        if not self._has(transaction):
            return
        transaction.phase = Phase.APPLYING
        self._unstable = None
        # Those that were committed or deleted since are written as such.
        current = {each: newer[each] for each in newer if self._newest.get(each) is newer[each]}
        self._session.write(self._puts(current))
        self._session.when_durable(partial(self._on_applied, transaction))

    def _on_applied(self, transaction: PendingTransaction) -> None:
        """The offsets have their own records."""
        if self._has(transaction):
            self._delete_records(transaction)

    # --- internals ------------------------------------------------------------------------------

    def _new(self, pending: PendingOffsets, parts: Mapping[int, int] = {}) -> PendingTransaction:
        return PendingTransaction(self.group_id, pending, self._next_number, parts)

    def _add(self, pending: PendingOffsets, parts: Mapping[int, int]) -> PendingTransaction:
        transaction = self._transactions[pending.producer_id] = self._new(pending, parts)
        self._unstable = None
        return transaction

    def _open(self, transaction: PendingTransaction) -> None:
        pending = transaction.pending
        opened = OpenTransaction(pending.producer_id, pending.producer_epoch, pending.started_ms)
        self._open_transactions.add(self._session.shard, opened, self)

    def _has(self, transaction: PendingTransaction) -> bool:
        return self._transactions.get(transaction.pending.producer_id) is transaction

    def _remove(self, transaction: PendingTransaction) -> None:
        if self._has(transaction):
            producer_id = transaction.pending.producer_id
            del self._transactions[producer_id]
            self._unstable = None
            self._open_transactions.discard(self._session.shard, producer_id, self)

    def _delete_records(self, transaction: PendingTransaction) -> None:
        self._session.write(transaction.deletes())
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

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def _numbered(
        self, offsets: Mapping[TopicPartition, CommittedOffset], number: int
    ) -> dict[TopicPartition, CommittedOffset]:
        return {
            topic_partition: replace(offset, commit_number=number)
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

    def _key(self, topic_partition: TopicPartition) -> str:
        return keys.committed_offset(self.group_id, *topic_partition)


def _partitions(transactions: Iterable[PendingTransaction]) -> set[TopicPartition]:
    return {partition for each in transactions for partition in each.pending.offsets}


def _metadata_bytes(all_offsets: Iterable[Mapping[TopicPartition, CommittedOffset]]) -> int:
    return sum(
        len(committed.metadata.encode())
        for offsets in all_offsets
        for committed in offsets.values()
    )
