"""`TransactionVerifier`: a leader asks whether a batch belongs to an open transaction.

The first batch of a transaction in a partition is appended only after its coordinator has confirmed
that the partition is a part of the transaction, so that the transaction's marker will come here:
without that, a late batch would leave a transaction open for ever (KIP-890). Clients of
`transaction.version` 2 do not add partitions by requests of their own: the coordinator is asked to
add them.

Invariant: the errors are those that a client of Produce or TxnOffsetCommit expects, retriable
unless the transaction itself does not allow the batch.
"""

import asyncio
from collections.abc import Collection
from typing import Final

from kafscale.broker.transaction_coordinator.coordinator import (
    PartitionErrors,
    TransactionCoordinator,
)
from kafscale.broker.transaction_coordinator.peers import Peers
from kafscale.control_plane.messages import AddPartitionsToTransactionRequest, Partition
from kafscale.errors import (
    CommitsThrottledError,
    ConcurrentTransactionsError,
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTransactionStateError,
    KafscaleError,
    NotCoordinatorError,
    ProducerFencedError,
    TransactionAbortableError,
    UnverifiedTransactionError,
)
from kafscale.metadata.cluster.cluster_cache import ClusterCache
from kafscale.metadata.schema.model import NO_BROKER, SHARDS_TOPIC, shard_of
from kafscale.observability.logging import get_logger
from kafscale.protocol.error_codes import ErrorCode, error_code_of
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import TransactionVersion

logger = get_logger(__name__)

COMPLETION_SECONDS_MAX: Final = 0.1
"""How long a coordinator holds a request until the producer's last transaction has ended. Leaders
ask again, so that requests from all brokers do not wait in one for long."""
RETRY_SECONDS: Final = 0.02
RETRY_SECONDS_MAX: Final = 1.0
"""How long the leader waits for the end of the producer's last transaction: its markers may take a
PUT to the bucket. Kafka, whose markers take a few milliseconds, waits for 0.1 s."""

_ERRORS: Final[dict[int, type[KafscaleError]]] = {
    each.code: each
    for each in (
        ConcurrentTransactionsError,
        CoordinatorLoadingError,
        CoordinatorUnavailableError,
        InvalidProducerIdMappingError,
        InvalidTransactionStateError,
        NotCoordinatorError,
        ProducerFencedError,
        TransactionAbortableError,
    )
}
"""What a coordinator may respond."""

_RETRIABLE: Final = (
    CommitsThrottledError,
    ConcurrentTransactionsError,
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
)


class TransactionVerifier:
    """Asks the coordinators of transactions, here or on other brokers."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        peers: Peers,
        cluster_cache: ClusterCache,
        *,
        broker_id: int,
    ) -> None:
        self._coordinator = coordinator
        self._peers = peers
        self._cluster_cache = cluster_cache
        self._broker_id = broker_id

    async def add(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
    ) -> PartitionErrors:
        """Add partitions to the open transaction; returns the error of each, or None."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + RETRY_SECONDS_MAX
        while True:
            errors = await self._ask(
                transactional_id, producer_id, epoch, partitions, verify_only=False
            )
            is_concurrent = any(
                isinstance(error, ConcurrentTransactionsError) for error in errors.values()
            )
            if not is_concurrent or loop.time() > deadline:
                return errors
            await asyncio.sleep(RETRY_SECONDS)

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
    ) -> PartitionErrors:
        """Whether partitions are in the open transaction; returns the error of each, or None."""
        return await self._ask(transactional_id, producer_id, epoch, partitions, verify_only=True)

    async def answer(self, request: AddPartitionsToTransactionRequest) -> list[int]:
        """As the coordinator, answer another broker: the error code of each partition."""
        partitions = [(each.topic, each.partition) for each in request.partitions]
        errors = await self._ask_here(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            partitions,
            verify_only=request.verify_only,
        )
        return [error_code_of(errors[partition]) for partition in partitions]

    async def _ask(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
    ) -> PartitionErrors:
        owner_id, _ = self._cluster_cache.leader(SHARDS_TOPIC, shard_of(transactional_id))
        if owner_id == NO_BROKER:
            error = CoordinatorUnavailableError("the transaction has no coordinator at the moment")
            return dict.fromkeys(partitions, error)
        if owner_id == self._broker_id:
            return await self._ask_here(
                transactional_id, producer_id, epoch, partitions, verify_only=verify_only
            )
        request = AddPartitionsToTransactionRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=verify_only,
            partitions=[Partition(*each).message for each in partitions],
        )
        try:
            codes = await self._peers.add_to_transaction(owner_id, request)
        except KafscaleError as error:
            logger.info("transaction not verified", broker_id=owner_id, reason=str(error))
            return dict.fromkeys(partitions, CoordinatorUnavailableError(str(error)))
        return {each: _error(code) for each, code in zip(partitions, codes, strict=True)}

    async def _ask_here(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        *,
        verify_only: bool,
    ) -> PartitionErrors:
        try:
            if verify_only:
                return await self._coordinator.verify_partitions(
                    transactional_id, producer_id, epoch, partitions
                )
            await self._coordinator.wait_completed(transactional_id, COMPLETION_SECONDS_MAX)
            await self._coordinator.add_partitions(
                transactional_id, producer_id, epoch, partitions, TransactionVersion.V2
            )
        except KafscaleError as error:
            return dict.fromkeys(partitions, error)
        return dict.fromkeys(partitions)


def client_error(error: KafscaleError, *, knows_abortable: bool) -> KafscaleError:
    """The error of a coordinator as a client of Produce or TxnOffsetCommit may get it.

    `knows_abortable` is false for versions that do not have TRANSACTION_ABORTABLE.
    """
    if isinstance(error, ProducerFencedError):
        return InvalidProducerEpochError(str(error))
    if isinstance(error, TransactionAbortableError) and not knows_abortable:
        return InvalidTransactionStateError("Partition was not added to the transaction")
    return error


def produce_error(error: KafscaleError, *, knows_abortable: bool) -> KafscaleError:
    """The same for Produce, whose clients do not expect the errors of coordinators."""
    if isinstance(error, _RETRIABLE):
        return UnverifiedTransactionError(
            "Unable to verify the partition has been added to the transaction."
            f" Underlying error: {ErrorCode.of(error.code).name}"
        )
    return client_error(error, knows_abortable=knows_abortable)


def _error(code: int) -> KafscaleError | None:
    if code == ErrorCode.NONE:
        return None
    if code in _ERRORS:
        return _ERRORS[code]()
    return KafscaleError(f"the coordinator of the transaction responded {ErrorCode.of(code).name}")
