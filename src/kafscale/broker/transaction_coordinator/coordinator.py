"""The transaction coordinator: the entry point of all requests that concern transactional ids.

Invariants: events of a transactional id are handled here, in one event loop, without awaits in
between. A request is answered once its change is in the store. A decided outcome is written to all
partitions, by this broker or by the next owner of the shard. Transactional ids of other shards are
unknown here.

`kafscale.transactions` has the state machine, `broker.shards` opens and releases shards,
`marker_sender` brings outcomes to partitions, and the handlers decode and encode the requests.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any, Final

import msgspec

from kafscale.aio.pacer import Pacer
from kafscale.broker.producer_ids import ProducerIds
from kafscale.broker.shards.pending_replies import in_time
from kafscale.broker.shards.shard_session import ShardSession
from kafscale.broker.shards.shards import Shards
from kafscale.broker.transaction_coordinator import loader
from kafscale.broker.transaction_coordinator.limits import check_id, check_size
from kafscale.broker.transaction_coordinator.marker_sender import MarkerSender
from kafscale.broker.transaction_coordinator.runtime import TransactionRuntime
from kafscale.broker.transaction_coordinator.transactional_ids import TransactionalIds
from kafscale.errors import (
    CoordinatorUnavailableError,
    InvalidProducerIdMappingError,
    InvalidTxnTimeoutError,
    KafscaleError,
    NotCoordinatorError,
    TransactionalIdNotFoundError,
)
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

RESUMED_PER_TURN: Final = 50
"""How many ids with a transaction continue before the event loop runs other tasks."""

DELETED_AT_ONCE: Final = 500
"""How many ids that have expired wait for the store together."""

PartitionErrors = Mapping[TopicPartition, KafscaleError | None]


class TransactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How long transactions may be open, and transactional ids unused; and how many there are."""

    timeout_ms_max: int
    id_expiration_ms: int
    expiration_interval_ms: int
    ids_max: int


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
        self._clock = clock
        self._ids = TransactionalIds(markers, counters, clock=clock)
        self._is_full = False
        self._is_shut_down = False
        shards.add_content(self)

    def __iter__(self) -> Iterator[TransactionRecord]:
        return (each.transaction.record() for each in self._ids)

    async def run(self) -> None:
        """Delete transactional ids that are not used; cancel it to stop."""
        try:
            while True:
                await asyncio.sleep(self.settings.expiration_interval_ms / 1000)
                await self.expire()
        finally:
            await self._markers.close()

    def shut_down(self) -> None:
        """Redirect clients: this broker is about to stop."""
        self._is_shut_down = True

    # --- shards ---------------------------------------------------------------------------------

    async def load(self, shards: Collection[int]) -> Callable[[Collection[int]], Awaitable[None]]:
        """Read the ids of these shards; the result restores those that are still wanted."""
        loaded = {
            shard: self._ids.new_shard(session)
            for shard in shards
            if (session := self._sessions.get(shard)) is not None
        }
        unfinished: list[TransactionRuntime] = []
        async for shard, record in loader.read(self._store, loaded.keys()):
            runtime = loaded[shard].add(Transaction.restore(record))
            if record.state is TransactionState.ONGOING or record.state.is_prepared:
                unfinished.append(runtime)

        def restore(current: Collection[int]) -> Awaitable[None]:
            for shard in current:
                self._ids.put_shard(loaded[shard])
            return self._resume(unfinished)

        return restore

    async def _resume(self, unfinished: Sequence[TransactionRuntime]) -> None:
        """Continue with transactions that are open or have no markers yet."""
        pacer = Pacer(RESUMED_PER_TURN)
        for runtime in unfinished:
            if runtime.session in self._ids:
                runtime.resume()
            await pacer.step()

    def unload(self, sessions: Collection[ShardSession], _error: NotCoordinatorError) -> None:
        """Forget the ids of these sessions; their waiting replies are resolved by the sessions."""
        for session in sessions:
            self._ids.remove_shard(session)

    # --- producers ------------------------------------------------------------------------------

    async def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerInitialized:
        """Give the id to a producer; earlier ones are fenced, and their transaction aborted."""
        check_id(transactional_id)
        if not 0 < timeout_ms <= self.settings.timeout_ms_max:
            raise InvalidTxnTimeoutError
        session = self._require_session(transactional_id)
        fresh = NO_PRODUCER_ID
        runtime = self._ids.get(session, transactional_id)
        if runtime is None or runtime.transaction.needs_producer_id:
            if runtime is None:
                self._check_count()
            fresh = await self._producer_ids.next()
            session = self._require_session(transactional_id)  # It may have been lost meanwhile.
            runtime = self._ids.get(session, transactional_id)
        if runtime is None:
            runtime = self._ids.add(session, Transaction.new(transactional_id, self._clock()))
        event = InitProducer(
            reply_token=0,
            timeout_ms=timeout_ms,
            producer_id=producer_id,
            epoch=epoch,
            fresh_producer_id=fresh,
        )
        initialized = self._handle(runtime, event)
        if runtime.transaction.record().producer_id == NO_PRODUCER_ID:
            self._ids.remove(runtime)
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
        check_size(runtime.transaction.record(), partitions)
        event = AddPartitions(
            reply_token=0,
            producer_id=producer_id,
            epoch=epoch,
            partitions=frozenset(partitions),
            version=version,
        )
        await in_time(self._handle(runtime, event))

    async def wait_completed(self, transactional_id: str, seconds: float) -> None:
        """Wait while the outcome of a transaction is being written, for a limited time."""
        completion = self._require_runtime(transactional_id).completion
        if completion is not None:
            await asyncio.wait([completion], timeout=seconds)

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
        check_id(transactional_id)
        runtime = self._ids.get(self._require_session(transactional_id), transactional_id)
        if runtime is None or runtime.transaction.state is TransactionState.DEAD:
            raise TransactionalIdNotFoundError
        return runtime.transaction.record()

    def is_open(self, transactional_id: str) -> bool:
        """Whether a transaction has partitions here, and its outcome is not decided."""
        session = self._sessions.get_by_id(transactional_id)
        runtime = None if session is None else self._ids.get(session, transactional_id)
        return runtime is not None and runtime.transaction.state is TransactionState.ONGOING

    async def list(self) -> AsyncIterator[TransactionRecord]:
        """All ids of our shards, in turns; raises while some are still loading."""
        self._check_not_shut_down()
        self._sessions.check_all_loaded()
        async for runtime in self._ids.in_turns():
            if runtime.transaction.state is not TransactionState.DEAD:
                yield runtime.transaction.record()

    def state_counts(self) -> Mapping[str, int]:
        """How many ids are in each state; it takes the same time for any number of them."""
        return {str(state): count for state, count in self._ids.state_counts().items()}

    async def expire(self) -> None:
        """Delete the ids that have not been used for a long time; waits for the store."""
        now_ms = self._clock()
        count = 0
        async for runtime in self._ids.in_turns():
            if runtime.transaction.is_expired(now_ms, self.settings.id_expiration_ms):
                runtime.delete()
                runtime.session.when_durable(partial(self._ids.remove, runtime))
                count += 1
                if count % DELETED_AT_ONCE == 0:
                    await runtime.session.wait_written()
        if count:
            logger.info("transactional ids expired", count=count)

    # --- internals ------------------------------------------------------------------------------

    def _check_count(self) -> None:
        """Raise a retriable error if no further id fits in the memory of this broker."""
        was_full, self._is_full = self._is_full, len(self._ids) >= self.settings.ids_max
        if not self._is_full:
            return
        if not was_full:
            logger.error("too many transactional ids", ids_max=self.settings.ids_max)
        raise CoordinatorUnavailableError(
            f"this broker has {self.settings.ids_max} transactional ids (transaction.idsMax); those"
            " that are not used expire after transaction.idExpirationMs"
        )

    def _handle(self, runtime: TransactionRuntime, event: Request) -> "asyncio.Future[Any]":
        reply_token, response = self._ids.replies.create()
        runtime.handle(msgspec.structs.replace(event, reply_token=reply_token))
        return response

    def _require_runtime(self, transactional_id: str) -> TransactionRuntime:
        check_id(transactional_id)
        runtime = self._ids.get(self._require_session(transactional_id), transactional_id)
        if runtime is None:
            raise InvalidProducerIdMappingError
        return runtime

    def _require_session(self, transactional_id: str) -> ShardSession:
        """The session of the shard of an id; raises unless it is served here."""
        self._check_not_shut_down()
        return self._sessions.require(transactional_id)

    def _check_not_shut_down(self) -> None:
        if self._is_shut_down:
            raise NotCoordinatorError("this broker is stopping")
