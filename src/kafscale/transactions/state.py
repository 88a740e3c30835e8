"""`State`: the record of a transaction and the effects of the present event; actions change it.

Invariant: every change of the state is a valid transition.
"""

from typing import Any, Final

import msgspec

from kafscale.errors import (
    ConcurrentTransactionsError,
    InvalidProducerIdMappingError,
    ProducerFencedError,
    TransactionError,
)
from kafscale.transactions.effects import Effect, Reply, Response, Save
from kafscale.transactions.events import AddPartitions, EndTransaction, VerifyPartitions
from kafscale.transactions.model import (
    EPOCH_MAX,
    NO_PRODUCER_ID,
    TransactionRecord,
    TransactionState,
)
from kafscale.transactions.transitions import DEAD, is_valid

CLIENT_EPOCH_MAX: Final = EPOCH_MAX - 1
"""The last epoch that a client gets."""


class State:
    __slots__ = ("effects", "record")

    def __init__(self, record: TransactionRecord) -> None:
        self.record = record
        self.effects: list[Effect] = []

    @property
    def is_exhausted(self) -> bool:
        """Whether its producer id has no further epoch for a client."""
        return self.record.epoch >= CLIENT_EPOCH_MAX

    def check_producer(self, event: AddPartitions | VerifyPartitions | EndTransaction) -> None:
        """Raise unless the event is by the present producer."""
        if event.producer_id != self.record.producer_id:
            raise InvalidProducerIdMappingError
        if event.epoch != self.record.epoch:
            raise ProducerFencedError

    def check_writer(self, event: AddPartitions | VerifyPartitions) -> None:
        """Raise unless the event is by the present producer, and its transaction can be ended.

        The marker of an outcome has a higher epoch, so the last one must not be used by a client:
        its transaction would stay open. Kafka accepts it.
        """
        self.check_producer(event)
        if event.epoch > CLIENT_EPOCH_MAX:
            raise ProducerFencedError

    def check_undecided(self) -> None:
        """Raise while an outcome is being written, and if the transactional id has expired."""
        if self.record.state.is_prepared or self.record.state is DEAD:
            raise ConcurrentTransactionsError

    def change(self, state: TransactionState, **changes: Any) -> None:
        record = self.record
        assert is_valid(record.state, state), f"{record.state} does not lead to {state}"
        self.record = msgspec.structs.replace(
            record, state=state, previous_producer_id=record.producer_id, **changes
        )

    def add_effect(self, effect: Effect) -> None:
        self.effects.append(effect)

    def save(self, *, is_lazy: bool = False) -> None:
        self.effects.append(Save(is_lazy))

    def reply(
        self, reply_token: int, response: Response | TransactionError, *, is_durable: bool = True
    ) -> None:
        self.effects.append(Reply(reply_token, response, is_durable))


def checked_fresh(producer_id: int) -> int:
    """The fresh producer id of an event that needs one."""
    assert producer_id != NO_PRODUCER_ID, "see `Transaction.needs_producer_id`"
    return producer_id
