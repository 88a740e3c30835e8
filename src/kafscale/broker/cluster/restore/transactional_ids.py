"""Transactional ids after a metadata restore. Pure.

Producers have used higher epochs since the snapshot, and logs remember them: with the restored
ones, every batch would be refused. So each transactional id gets a producer id that was never used.

Invariant: what the snapshot says to be decided is decided so, and what it says to be open is
aborted. Its markers have the former producer id and the epoch of the snapshot: logs that know a
later epoch of the producer refuse them. Transactions that began after the snapshot have no
coordinator: `kafscale transaction find-hanging` finds those that are open.
"""

from msgspec.structs import replace

from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_EPOCH,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)


def with_producer(record: TransactionRecord, producer_id: int, now_ms: int) -> TransactionRecord:
    """A restored transactional id, whose next transactions have this producer id."""
    if record.state is TransactionState.ONGOING:
        # As by the coordinator at the timeout: the former producer may have ended it since.
        return replace(
            record,
            state=TransactionState.PREPARE_ABORT,
            epoch=min(record.epoch + 1, EPOCH_MAX),
            last_epoch=record.epoch,
            next_producer_id=producer_id,
            updated_ms=now_ms,
            version=TransactionVersion.V2,
        )
    if record.state.is_prepared:
        return replace(record, next_producer_id=producer_id)
    return replace(
        record,
        producer_id=producer_id,
        previous_producer_id=record.producer_id,
        epoch=0,
        last_epoch=NO_EPOCH,
    )
