"""The states of a transaction and their transitions.

               InitProducerId            AddPartitionsToTxn             EndTxn, or timed out
    (new) ─────────────────────▶ Empty ─────────────────────▶ Ongoing ────────┐
                                   ▲                          ▲    │          │
                    InitProducerId │      AddPartitionsToTxn  │    │ fenced   │
                                   │ ┌────────────────────────┘    ▼          │
                                   │ │               PrepareEpochFence        │
                                   │ │                             │          │
                                   │ │   all have markers          ▼          ▼
                         CompleteAbort ◀──────────────────── PrepareAbort     │
                        CompleteCommit ◀──────────────────── PrepareCommit ◀──┘

Under `transaction.version` 2, a producer can also abort a transaction that is Empty or complete: it
does not know whether a partition was added. What has been idle for long becomes Dead, and is
deleted.
"""

from collections.abc import Mapping
from typing import Final

from kafscale.transactions.model import TransactionState

EMPTY: Final = TransactionState.EMPTY
ONGOING: Final = TransactionState.ONGOING
PREPARE_COMMIT: Final = TransactionState.PREPARE_COMMIT
PREPARE_ABORT: Final = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT: Final = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT: Final = TransactionState.COMPLETE_ABORT
PREPARE_EPOCH_FENCE: Final = TransactionState.PREPARE_EPOCH_FENCE
DEAD: Final = TransactionState.DEAD

PREVIOUS_STATES: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    EMPTY: frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}),
    ONGOING: frozenset({ONGOING, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}),
    PREPARE_COMMIT: frozenset({ONGOING}),
    PREPARE_ABORT: frozenset(
        {ONGOING, PREPARE_EPOCH_FENCE, EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}
    ),
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
    DEAD: frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT}),
}
"""The states that each state can follow, equal to Kafka's."""


def is_valid(before: TransactionState, after: TransactionState) -> bool:
    return before in PREVIOUS_STATES[after]
