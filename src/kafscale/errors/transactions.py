"""Errors of transactional producers and their coordinators; the package docstring shows the tree.

Each has Kafka's message by default, as clients and their users know it.
"""

from kafscale.errors.base import RefusedError


class TransactionError(RefusedError):
    """A request that a transaction, or its coordinator, rejects."""

    default_message = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.default_message)


class InvalidTransactionStateError(TransactionError):
    """An operation that the state of the transaction does not allow."""

    code = 48
    default_message = "The producer attempted a transactional operation in an invalid state."


class InvalidProducerIdMappingError(TransactionError):
    """The transactional id is unknown, or has another producer id."""

    code = 49
    default_message = (
        "The producer attempted to use a producer id which is not currently assigned to its "
        "transactional id."
    )


class InvalidTxnTimeoutError(TransactionError):
    """A transaction timeout that is not positive or too long."""

    code = 50
    default_message = (
        "The transaction timeout is larger than the maximum value allowed by the broker "
        "(as configured by transaction.max.timeout.ms)."
    )


class ConcurrentTransactionsError(TransactionError):
    """The transaction is being completed; retriable."""

    code = 51
    default_message = (
        "The producer attempted to update a transaction while another concurrent operation on the "
        "same transaction was ongoing."
    )


class TransactionCoordinatorFencedError(TransactionError):
    """A marker by a coordinator that is no longer the transaction's."""

    code = 52
    default_message = (
        "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the "
        "current coordinator for a given producer."
    )


class UnstableOffsetCommitError(TransactionError):
    """Offsets of an open transaction are pending; retriable."""

    code = 88
    default_message = "There are unstable offsets that need to be cleared."


class ProducerFencedError(TransactionError):
    """A newer producer uses the transactional id, or the transaction has timed out."""

    code = 90
    default_message = (
        "There is a newer producer with the same transactionalId which fences the current one."
    )


class TransactionalIdNotFoundError(TransactionError):
    """There is no such transactional id."""

    code = 105
    default_message = "The transactionalId could not be found."


class TransactionAbortableError(TransactionError):
    """The transaction cannot commit, but the producer can abort it and continue."""

    code = 120
    default_message = (
        "The server encountered an error with the transaction. The client can abort the "
        "transaction to continue using this transactional ID."
    )


class UnverifiedTransactionError(TransactionError):
    """The coordinator of a transaction could not confirm it now; retriable.

    Kafka responds with NOT_ENOUGH_REPLICAS, which all producers retry without asking for metadata.
    """

    code = 19
