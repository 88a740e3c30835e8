"""AddPartitionsToTxn: partitions of a transaction are added by producers, verified by leaders.

Invariant: an added partition stays in the transaction until it has the marker of its outcome.
"""

from kafscale.errors import TransactionAbortableError, TransactionError
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.effects import PartitionsAdded, PartitionsVerified
from kafscale.transactions.events import AddPartitions, VerifyPartitions
from kafscale.transactions.state import State
from kafscale.transactions.transitions import ONGOING


def add_partitions(state: State, event: AddPartitions, now_ms: int) -> None:
    state.check_undecided()
    state.check_writer(event)
    record = state.record
    if record.state is not ONGOING or not event.partitions <= record.partitions:
        state.change(
            ONGOING,
            partitions=record.partitions | event.partitions,
            started_ms=record.started_ms if record.state is ONGOING else now_ms,
            updated_ms=now_ms,
            version=event.version,
        )
        state.save()
    state.reply(event.reply_token, PartitionsAdded())


def verify_partitions(state: State, event: VerifyPartitions, _now_ms: int) -> None:
    """The reply is durable: a leader appends what a restored transaction has to abort."""
    errors: dict[TopicPartition, TransactionError | None]
    try:
        state.check_writer(event)
        state.check_undecided()
    except TransactionError as error:
        errors = dict.fromkeys(event.partitions, error)
    else:
        errors = {
            it: None if it in state.record.partitions else TransactionAbortableError()
            for it in event.partitions
        }
    state.reply(event.reply_token, PartitionsVerified(errors))
