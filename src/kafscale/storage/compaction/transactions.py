"""What compaction does with the batches of transactions, as Kafka's log cleaner does it. Pure.

Records of aborted transactions are removed at once. A marker stays as long as a batch of its
transaction is met before it, and then until a delete horizon: readers that have read such a batch
still get its marker. The horizon is set when the marker is first met without batches, like that of
a tombstone (see `records.batch_rewrite`).

A batch is aborted if it is transactional and its producer has an aborted transaction that begins at
the last offset of the batch or before, and has its marker after that. Consumers compare the last
offset, too: compaction may let a batch begin earlier than its first record.

Invariants: only offsets below the last stable offset are compacted, so every transaction has ended
there. Markers are dropped after all batches of their transactions.

A batch takes over the offsets of those that are dropped behind it. It must not look as if it were
in the aborted transaction that begins there. Batches of the same producer's transaction before have
their marker behind them, and a commit marker may reach into the next transaction. An abort marker
may not: consumers would take it for the end of that transaction, and then return its other batches.
So if these are not dropped in the same segment, one record of the first batch stays.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from kafscale.records import BatchView, inflate
from kafscale.records.batch import CONTROL_BIT, DELETE_HORIZON_BIT, TRANSACTIONAL_BIT
from kafscale.records.batch_rewrite import keep_last_record, rebuild_batch
from kafscale.records.control import read_end_marker
from kafscale.storage.log.state.transactions import AbortedTransaction

_ONLY_RECORD: Final = b"\x01"
_DATA_MASK: Final = CONTROL_BIT | TRANSACTIONAL_BIT


class CleanedTransactions:
    """Follows the transactions of consecutive batches."""

    def __init__(
        self, aborted: Iterable[AbortedTransaction] = (), opened: Iterable[int] = ()
    ) -> None:
        """`opened`: the producers whose transactions began before the first batch."""
        self._aborted: dict[int, tuple[list[int], list[int]]] = {}
        for producer_id, first_offset, last_offset in aborted:  # Ascending by last offset.
            firsts, lasts = self._aborted.setdefault(producer_id, ([], []))
            firsts.append(first_offset)
            lasts.append(last_offset)
        self._with_batches = set(opened)
        """The producers of which a batch was met since their last marker."""

    def aborted_at(self, batch: BatchView) -> int | None:
        """The offset of the marker that has aborted a batch; None if it was not aborted."""
        if not self._aborted or batch.attributes & _DATA_MASK != TRANSACTIONAL_BIT:
            return None
        firsts, lasts = self._aborted.get(batch.producer_id, ((), ()))
        last_offset = batch.last_offset
        number = bisect_left(lasts, last_offset)
        if number == len(lasts) or firsts[number] > last_offset:
            return None
        return lasts[number]

    @staticmethod
    def clean_aborted(
        batch: BatchView, marker_offset: int, before: BatchView | None, end_offset: int
    ) -> BatchView | None:
        """Return what is left of an aborted batch.

        `before` is the last batch that is kept before it. All batches below the end offset are
        dropped together.
        """
        is_behind_marker = (
            before is not None
            and before.attributes & CONTROL_BIT
            and before.producer_id == batch.producer_id
        )
        if not is_behind_marker or marker_offset < end_offset:
            return None
        return batch if batch.count == 1 else keep_last_record(batch)

    def note_data(self, batch: BatchView) -> None:
        """Note a batch that is no control batch, whether it is kept or not."""
        if batch.attributes & TRANSACTIONAL_BIT:
            self._with_batches.add(batch.producer_id)

    def clean_marker(self, batch: BatchView, now_ms: int, horizon_ms: int) -> BatchView | None:
        """Return what is left of a control batch: itself, one with a delete horizon, or None."""
        if read_end_marker(batch) is None:
            return batch  # It is not about a transaction.
        if batch.producer_id in self._with_batches:
            self._with_batches.discard(batch.producer_id)
            return batch
        if not batch.attributes & DELETE_HORIZON_BIT:
            return rebuild_batch(batch, inflate(batch), _ONLY_RECORD, horizon_ms=horizon_ms)
        return None if batch.base_timestamp_ms <= now_ms else batch
