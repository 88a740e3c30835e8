"""A transactional id as it is stored in the metadata store, and as it is described to clients.

Data only. Invariant: a transaction that is restored from its record continues where it was; nothing
else of it has to survive.
"""

import enum
from typing import Final

import msgspec

from kafscale.text.topic_partition import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
"""Shared by all ids without an open transaction: an empty set takes as much memory as a record."""

EPOCH_MAX: Final = 0x7FFF
"""An epoch is an int16; no client gets this one, so that the newest one can always be fenced."""


class TransactionState(enum.StrEnum):
    """The state, spelled as in DescribeTransactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    """Never stored: it is left, for PrepareAbort, in the event that enters it."""
    DEAD = "Dead"
    """Never stored: the record is deleted."""

    @property
    def is_prepared(self) -> bool:
        """The outcome is decided, and markers are being written."""
        return self in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}

    @property
    def is_complete(self) -> bool:
        return self in {TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}


class TransactionVersion(enum.IntEnum):
    """Levels of the feature `transaction.version`."""

    V0 = 0
    V1 = 1
    V2 = 2
    """The epoch is bumped by the end of every transaction (KIP-890)."""

    @property
    def bumps_epoch(self) -> bool:
        return self >= TransactionVersion.V2


class TransactionRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The newest transaction of a transactional id, and the producer that may use it."""

    transactional_id: str
    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last change of this record; differs after a change of the id."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id from the completion of this transaction on: its epochs are exhausted."""
    epoch: int
    """While prepared under V2, and from then on, the bumped one: markers have it."""
    last_epoch: int = NO_EPOCH
    """The epoch before, if its producer may still repeat the request that bumped it."""
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    """While prepared, those that may have no marker yet."""
    started_ms: int = NO_TIME
    updated_ms: int
    version: TransactionVersion = TransactionVersion.V0
    """The version that the client used when it changed the state."""
