"""The transaction coordinator: the entry point of all requests that concern transactional ids.

Invariants: events of a transactional id are handled here, in one event loop, without awaits in
between. A request is answered once its change is in the store. A decided outcome is written to all
partitions, by this broker or by the next owner of the shard. Transactional ids of other shards are
unknown here.

`kafscale.transactions` has the state machine, `broker.shards` opens and releases shards,
`marker_sender` brings outcomes to partitions, and the handlers decode and encode the requests.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.shards.pending_replies import PendingReplies, in_time
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.shards.shards import Shards
from kafscale.broker.shards.writer import fit_together
from kafscale.broker.transaction_coordinator import loader
from kafscale.broker.transaction_coordinator.marker_sender import MarkerSender
from kafscale.broker.transaction_coordinator.runtime import TransactionRuntime
from kafscale.errors import (
    InvalidProducerIdMappingError,
    InvalidRequestError,
    InvalidTxnTimeoutError,
    KafscaleError,
    NotCoordinatorError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.transaction_codec import encode_transaction
from kafscale.metadata.store.base import Put
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.counters import TransactionCounters
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.effects import PartitionsVerified, ProducerInitialized, TransactionEnded
from kafscale.transactions.events import (
    AddPartitions,
    EndTransaction,
    InitProducer,
    Request,
    VerifyPartitions,
)
from kafscale.transactions.model import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionRecord,
    TransactionState,
    TransactionVersion,
)
from kafscale.transactions.transaction import Transaction

logger = get_logger(__name__)

ID_BYTES_MAX: Final = 1024
"""The id is part of the keys of the metadata store and of log lines."""

CHECKED_PARTITIONS_MIN: Final = 4_000
"""The record of a transaction with fewer partitions fits into a commit of the store in any case."""

PartitionErrors = Mapping[TopicPartition, KafscaleError | None]


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long transactions may be open, and transactional ids unused."""

    timeout_ms_max: int
    id_expiration_ms: int
    expiration_interval_ms: int


class TransactionCoordinator:
    """All transactional ids of this broker's shards, as the handlers see them."""

    def __init__(
        self,
        shards: Shards,
        producer_ids: ProducerIds,
        markers: MarkerSender,
        settings: TransactionSettings,
        counters: TransactionCounters,
        *,
        clock: Callable[[], int],
    ) -> None:
        self.settings = settings
        self._store = shards.store
        self._sessions = shards.sessions
        self._producer_ids = producer_ids
        self._markers = markers
        self._counters = counters
        self._clock = clock
        self._replies = PendingReplies()
        self._runtimes: dict[str, TransactionRuntime] = {}
        self._is_shut_down = False
        shards.add_content(self)

    def __iter__(self) -> Iterator[TransactionRecord]:
        return iter([each.transaction.record() for each in self._runtimes.values()])

    async def run(self) -> None:
        """Delete transactional ids that are not used; cancel it to stop."""
        try:
            while True:
                await asyncio.sleep(self.settings.expiration_interval_ms / 1000)
                self.expire()
        finally:
            await self._markers.close()

    def shut_down(self) -> None:
        """Redirect clients: this broker is about to stop."""
        self._is_shut_down = True

    # --- shards ---------------------------------------------------------------------------------

    async def load(self, shards: Collection[int]) -> Callable[[Collection[int]], None]:
        """Read the ids of these shards; the result restores those that are still wanted."""
        loaded = await loader.read(self._store, shards)

        def restore(current: Collection[int]) -> None:
            for shard in current:
                for record in loaded[shard]:
                    self._add(Transaction.restore(record)).resume()

        return restore

    def unload(self, sessions: Collection[ShardSession], _error: NotCoordinatorError) -> None:
        """Forget the ids of these sessions; their waiting replies are resolved by the sessions."""
        ended = set(sessions)
        for name, runtime in list(self._runtimes.items()):
            if runtime.session in ended:
                runtime.close()
                del self._runtimes[name]

    # --- producers ------------------------------------------------------------------------------

    async def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerInitialized:
        """Give the id to a producer; earlier ones are fenced, and their transaction aborted."""
        _check_id(transactional_id)
        if not 0 < timeout_ms <= self.settings.timeout_ms_max:
            raise InvalidTxnTimeoutError
        self._require_session(transactional_id)
        fresh = NO_PRODUCER_ID
        runtime = self._runtimes.get(transactional_id)
        if runtime is None or runtime.transaction.needs_producer_id:
            fresh = await self._producer_ids.next()
            self._require_session(transactional_id)  # It may have been lost meanwhile.
            runtime = self._runtimes.get(transactional_id)
        if runtime is None:
            runtime = self._add(Transaction.new(transactional_id, self._clock()))
        event = InitProducer(
            reply_token=0,
            timeout_ms=timeout_ms,
            producer_id=producer_id,
            epoch=epoch,
            fresh_producer_id=fresh,
        )
        initialized = self._handle(runtime, event)
        if runtime.transaction.record().producer_id == NO_PRODUCER_ID:
            self._remove(runtime)
        response: ProducerInitialized = await in_time(initialized)
        return response

    async def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        *,
        is_commit: bool,
        version: TransactionVersion,
    ) -> TransactionEnded:
        """Commit or abort; returns the producer id and epoch of the next transaction."""
        runtime = self._require_runtime(transactional_id)
        fresh = NO_PRODUCER_ID
        if runtime.transaction.needs_producer_id:
            fresh = await self._producer_ids.next()
            runtime = self._require_runtime(transactional_id)
        event = EndTransaction(
            reply_token=0,
            producer_id=producer_id,
            epoch=epoch,
            is_commit=is_commit,
            version=version,
            fresh_producer_id=fresh,
        )
        response: TransactionEnded = await in_time(self._handle(runtime, event))
        return response

    # --- partitions -----------------------------------------------------------------------------

    async def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        version: TransactionVersion = TransactionVersion.V0,
    ) -> None:
        """Make partitions, or none at all, a part of the transaction; begins it if necessary.

        Raises `TransactionAbortableError` if the store cannot hold a transaction with all of them.
        """
        runtime = self._require_runtime(transactional_id)
        _check_size(runtime.transaction.record(), partitions)
        event = AddPartitions(
            reply_token=0,
            producer_id=producer_id,
            epoch=epoch,
            partitions=frozenset(partitions),
            version=version,
        )
        await in_time(self._handle(runtime, event))

    async def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
    ) -> PartitionErrors:
        """Whether partitions are a part of the transaction: the error of each, or None."""
        runtime = self._require_runtime(transactional_id)
        event = VerifyPartitions(
            reply_token=0, producer_id=producer_id, epoch=epoch, partitions=frozenset(partitions)
        )
        verified: PartitionsVerified = await in_time(self._handle(runtime, event))
        return verified.errors

    # --- administration -------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> TransactionRecord:
        """The present state of an id, which need not be in the store yet."""
        _check_id(transactional_id)
        self._require_session(transactional_id)
        runtime = self._runtimes.get(transactional_id)
        if runtime is None or runtime.transaction.state is TransactionState.DEAD:
            raise TransactionalIdNotFoundError
        return runtime.transaction.record()

    def is_open(self, transactional_id: str) -> bool:
        """Whether a transaction has partitions here, and its outcome is not decided."""
        runtime = self._runtimes.get(transactional_id)
        return runtime is not None and runtime.transaction.state is TransactionState.ONGOING

    def list(self) -> Collection[TransactionRecord]:
        """All ids of our shards; raises while some are still loading."""
        self._check_not_shut_down()
        self._sessions.check_all_loaded()
        return [record for record in self if record.state is not TransactionState.DEAD]

    def expire(self) -> None:
        """Delete the ids that have not been used for a long time."""
        now_ms = self._clock()
        for runtime in list(self._runtimes.values()):
            if runtime.transaction.is_expired(now_ms, self.settings.id_expiration_ms):
                logger.info(
                    "transactional id expired",
                    transactional_id=runtime.transaction.record().transactional_id,
                )
                runtime.delete()
                runtime.session.when_durable(partial(self._remove, runtime))

    # --- internals ------------------------------------------------------------------------------

    def _add(self, transaction: Transaction) -> TransactionRuntime:
        name = transaction.record().transactional_id
        session = self._sessions.get_by_id(name)
        assert session is not None, "the shard of the transactional id is owned by this broker"
        runtime = self._runtimes[name] = TransactionRuntime(
            transaction, session, self._replies, self._markers, self._counters, clock=self._clock
        )
        return runtime

    def _remove(self, runtime: TransactionRuntime) -> None:
        name = runtime.transaction.record().transactional_id
        if self._runtimes.get(name) is runtime:
            runtime.close()
            del self._runtimes[name]

    def _handle(self, runtime: TransactionRuntime, event: Request) -> "asyncio.Future[Any]":
        reply_token, response = self._replies.create()
        runtime.handle(msgspec.structs.replace(event, reply_token=reply_token))
        return response

    def _require_runtime(self, transactional_id: str) -> TransactionRuntime:
        _check_id(transactional_id)
        self._require_session(transactional_id)
        runtime = self._runtimes.get(transactional_id)
        if runtime is None:
            raise InvalidProducerIdMappingError
        return runtime

    def _require_session(self, transactional_id: str) -> None:
        """Raise unless the shard of an id is served here."""
        self._check_not_shut_down()
        self._sessions.require(transactional_id)

    def _check_not_shut_down(self) -> None:
        if self._is_shut_down:
            raise NotCoordinatorError("this broker is stopping")


def _check_id(transactional_id: str) -> None:
    """Raise if no transaction can have this id."""
    if not transactional_id:
        raise InvalidRequestError("the transactional id is empty")
    if (size_bytes := len(transactional_id.encode())) > ID_BYTES_MAX:
        raise InvalidRequestError(
            f"a transactional id of {size_bytes} bytes exceeds the limit of {ID_BYTES_MAX}"
        )


def _check_size(record: TransactionRecord, partitions: Collection[TopicPartition]) -> None:
    """Raise if the store does not accept the record with these partitions.

    Its transaction would be lost in a crash, and stay open in its partitions.
    """
    if len(record.partitions) + len(partitions) < CHECKED_PARTITIONS_MIN:
        return
    extended = msgspec.structs.replace(record, partitions=record.partitions.union(partitions))
    key = keys.transactional_id(record.transactional_id)
    if not fit_together([Put(key, encode_transaction(extended))]):
        raise TransactionAbortableError(
            f"the transaction would have {len(extended.partitions)} partitions, whose names are too"
            " long for a record of the metadata store"
        )
