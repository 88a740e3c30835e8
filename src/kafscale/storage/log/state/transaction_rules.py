"""Which batches of producers a partition accepts, and what they change: the rules of Kafka.

The rules are those of ProducerAppendInfo, VerificationStateEntry and UnifiedLog in Apache Kafka
4.1; `producer_state` has those of sequences.

* A transactional batch needs an open transaction of its producer and epoch, or a guard: the
  coordinator has confirmed after `start_verification` that the transaction is open and includes
  this partition. Markers invalidate guards, so that no transaction begins after its own marker and
  stays open for ever; so does the first batch, because others then need no guard. A marker of the
  epoch that a guard is about does not invalidate it: with KIP-890, it ended the transaction before.
* A producer with an open transaction may not write other batches.
* A marker of a higher epoch begins a new sequence; one of the same epoch continues it. A producer
  that is known only from a marker begins with sequence 0.
"""

from typing import Final

from kafscale.errors import (
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kafscale.records.batch import CONTROL_BIT, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from kafscale.records.control import ControlType, EndMarker
from kafscale.storage.log.state.producer_state import Duplicate, Producers
from kafscale.storage.log.state.transaction_state import (
    Transactions,
    Verification,
    VerificationGuard,
)
from kafscale.storage.log.state.transactions import MarkedProducer

OF_TRANSACTIONS: Final = TRANSACTIONAL_BIT | CONTROL_BIT
"""The attributes of batches that `record` is needed for; for others, `Producers` is enough."""

_NOT_ONGOING: Final = "Record was not part of an ongoing transaction"


class TransactionRules:
    """The rules of one partition."""

    __slots__ = ("_producers", "_transactions")

    def __init__(self, producers: Producers, transactions: Transactions) -> None:
        self._producers = producers
        self._transactions = transactions
        producers.keep(transactions.open)

    # --- decisions ------------------------------------------------------------------------------

    def needs_verification(self, header: BatchHeader) -> bool:
        """Whether the coordinator has to confirm the transaction of a batch before its append."""
        if header.producer_id < 0 or not header.attributes & TRANSACTIONAL_BIT:
            return False
        return not self._has_open(header.producer_id, header.producer_epoch)

    def start_verification(
        self, producer_id: int, epoch: int, base_sequence: int, *, adds_partition: bool
    ) -> VerificationGuard:
        """The guard that permits the first batch, if the coordinator confirms the transaction."""
        self._producers.check_epoch(producer_id, epoch)
        return self._transactions.start_verification(
            producer_id, epoch, base_sequence, adds_partition=adds_partition
        )

    def check(
        self, header: BatchHeader, marker: EndMarker | None, guard: VerificationGuard | None
    ) -> Duplicate | None:
        """Return the stored batch if this one is a duplicate; None if it is to be appended.

        This is for transactional batches, and for all others while transactions are open.
        """
        if header.attributes & CONTROL_BIT:
            if marker is not None:
                self._check_marker(header, marker)
            return None
        if header.attributes & TRANSACTIONAL_BIT:
            return self._check_transactional(header, guard)
        duplicate = self._producers.check_header(header)
        if duplicate is None and header.producer_id in self._transactions.open:
            raise InvalidTransactionStateError(
                f"producer {header.producer_id} has an open transaction, which the batch is not"
                " part of"
            )
        return duplicate

    def _has_open(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has an open transaction and is at this epoch."""
        is_open = producer_id in self._transactions.open
        return is_open and self._producers.epoch_of(producer_id) == epoch

    def _check_transactional(
        self, header: BatchHeader, guard: VerificationGuard | None
    ) -> Duplicate | None:
        duplicate = self._producers.find_duplicate(header)
        if duplicate is not None:
            return duplicate
        producer_id, epoch = header.producer_id, header.producer_epoch
        self._producers.check_epoch(producer_id, epoch)
        verification = self._transactions.verification_of(producer_id)
        if not self._has_open(producer_id, epoch) and (
            verification is None or verification.guard is not guard
        ):
            raise InvalidTransactionStateError(_NOT_ONGOING)
        if verification is not None:
            self._check_verified_sequence(verification, header)
        return self._producers.check_header(header)

    def _check_verified_sequence(self, verification: Verification, header: BatchHeader) -> None:
        sequence = header.base_sequence
        has_batches = self._producers.last_sequence_of(header.producer_id) != NO_SEQUENCE
        if verification.adds_partition and sequence != 0 and not has_batches:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} begins its batches with sequence {sequence}"
            )
        if sequence > verification.lowest_sequence:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} sent sequence {sequence} before"
                f" {verification.lowest_sequence}"
            )

    def _check_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        self._producers.check_epoch(header.producer_id, header.producer_epoch)
        known = self._transactions.marker_of(header.producer_id)
        if known is not None and known.coordinator_epoch > marker.coordinator_epoch:
            raise TransactionCoordinatorFencedError(
                f"coordinator epoch {marker.coordinator_epoch} of producer {header.producer_id} is"
                f" older than {known.coordinator_epoch}"
            )

    # --- changes --------------------------------------------------------------------------------

    def record(
        self,
        header: BatchHeader,
        marker: EndMarker | None,
        base_offset: int,
        now_ms: int,
        high_watermark: int,
    ) -> None:
        """Record a batch that was appended, or is replayed.

        Producers expire by append time, not by record timestamp: a producer that copies old records
        is active.
        """
        if header.attributes & CONTROL_BIT:
            if marker is not None:
                self._record_marker(header, marker, base_offset, high_watermark)
            return
        if header.attributes & TRANSACTIONAL_BIT:
            producer_id = header.producer_id
            if producer_id not in self._transactions.open:
                self._transactions.begin(producer_id, header.producer_epoch, base_offset, now_ms)
            self._transactions.end_verification(producer_id)
        self._producers.record_header(header, base_offset, now_ms, high_watermark)

    def _record_marker(
        self, header: BatchHeader, marker: EndMarker, offset: int, high_watermark: int
    ) -> None:
        """Record a marker at the time in its record, which is that of its append."""
        producer_id, epoch = header.producer_id, header.producer_epoch
        time_ms = header.max_timestamp_ms
        self._transactions.end(
            MarkedProducer(producer_id, epoch, marker.coordinator_epoch, time_ms),
            offset,
            high_watermark,
            is_abort=marker.control_type is ControlType.ABORT,
        )
        verification = self._transactions.verification_of(producer_id)
        if verification is not None and not (
            verification.adds_partition and verification.epoch == epoch
        ):
            self._transactions.end_verification(producer_id)
        self._producers.record_marker(producer_id, epoch, offset, time_ms, high_watermark)
