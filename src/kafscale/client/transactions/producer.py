"""A transactional producer: records of any topics and offsets of groups, all or nothing.

    async with TransactionalProducer(client, "billing-1") as producer:
        await producer.init()
        await producer.begin()
        await producer.send("invoices", b"42")
        await producer.send_offsets(GroupMembership("billing"), {("orders", 0): 1017})
        await producer.commit()

Invariants:
* Between `begin` and the end of the transaction, every written partition is part of it.
* After a failure the transaction can only be aborted. `AbortableTransactionError` says so; the
  producer remains usable.
* After `ProducerFencedError`, and any error that is not of the transaction, the producer is done.
* An end whose outcome is unknown can only be repeated as it was: `commit` after `commit`.

With `transaction.version` 2, the coordinator raises the epoch with every end, so that a late batch
of an earlier transaction is rejected. In the classic protocol the producer raises it after a failed
transaction (KIP-360). Calls are not concurrent, but for `send` and `send_batch`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from random import Random
from typing import Final, Self

import msgspec

from kafscale.aio.clock import clock as system_clock
from kafscale.client.client import Client
from kafscale.client.errors import (
    AbortableTransactionError,
    BrokerResponseError,
    Pause,
    ProducerFencedError,
    is_retriable,
)
from kafscale.client.transactions.coordinator import (
    VERSION_2,
    ProducerIdentity,
    TransactionCoordinator,
)
from kafscale.client.transactions.delivery import Delivery
from kafscale.client.transactions.detached import OpenTransaction
from kafscale.client.transactions.group_commit import GroupMembership, commit_in_transaction
from kafscale.errors import InvalidTransactionStateError, KafscaleError, ProtocolError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.records import BatchView, Codec, Header
from kafscale.text.topic_partition import TopicPartition

FATAL_ERRORS: Final = frozenset(
    (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    )
)
"""Errors that another transaction would meet, too."""


class TransactionSettings(msgspec.Struct, frozen=True):
    """Settings of a transactional producer."""

    timeout_ms: int = 60_000
    """The coordinator aborts a transaction that is open for longer."""
    codec: Codec = Codec.NONE
    batch_bytes: int = 512 * 1024
    version_max: int = VERSION_2
    """The highest `transaction.version` to use; the classic protocol below 2."""


DEFAULTS: Final = TransactionSettings()


class State(Enum):
    UNINITIALIZED = auto()
    READY = auto()
    OPEN = auto()
    FAILED = auto()
    """The transaction has to be aborted."""
    COMMITTING = auto()
    ABORTING = auto()
    DONE = auto()
    """The producer was fenced, has failed, or has handed over its transaction."""


class TransactionalProducer:
    """The producer of one transactional id. An asynchronous context manager.

    Its exit aborts an open transaction.
    """

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        settings: TransactionSettings = DEFAULTS,
        *,
        clock: Callable[[], int] = system_clock,
        random: Random | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self._client = client
        self._settings = settings
        self._clock = clock
        self._pause = pause
        self._coordinator = TransactionCoordinator(client, transactional_id, pause=pause)
        self._delivery = Delivery(
            client,
            transactional_id,
            self._before_write,
            random=random or Random(),  # noqa: S311 - it chooses partitions.
            pause=pause,
        )
        self._added: set[TopicPartition] = set()
        """The partitions that the open transaction has."""
        self._to_add: set[TopicPartition] = set()
        self._adding = asyncio.Lock()
        self._is_started = False
        """Whether the coordinator may know the open transaction."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self.state in {State.OPEN, State.FAILED, State.ABORTING}:
                await self.abort()
        except KafscaleError:
            pass  # The coordinator aborts the transaction after its timeout.
        finally:
            self._delivery.cancel()
            await self._coordinator.__aexit__()

    @property
    def producer(self) -> ProducerIdentity:
        return self._delivery.producer

    async def init(self) -> None:
        """Fence other producers of the transactional id, whose open transaction is aborted."""
        self._check_state("init", State.UNINITIALIZED)
        try:
            self._delivery.use(await self._coordinator.init(self._settings.timeout_ms))
        except KafscaleError as error:
            if not is_retriable(error):
                self.state = State.DONE
            raise
        self.state = State.READY

    async def begin(self) -> None:
        """Begin a transaction."""
        self._check_state("begin", State.READY)
        version = min(await self._coordinator.version(), self._settings.version_max)
        self._delivery.start(version_2=version >= VERSION_2)
        self._added.clear()
        self._to_add.clear()
        self._is_started = False
        self.state = State.OPEN

    # --- writing ------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> None:
        """Add a record; wait while its partition has a full batch and one in flight."""
        self._check_open("send")
        try:
            found = await self._delivery.topic(topic)
            index = found.partitioner.choose(key) if partition is None else partition
            found.check_partition(index)
        except KafscaleError as error:
            raise self._failed(error) from error
        collector = self._delivery.collector((topic, index))
        collector.add(key, value, headers, self._clock() if timestamp_ms is None else timestamp_ms)
        if collector.size_bytes >= self._settings.batch_bytes:
            found.partitioner.batch_filled(index)
            await self._dispatch((topic, index))

    async def send_batch(self, topic: str, partition: int, batch: bytearray) -> None:
        """Add a batch, whose producer fields are set in place, after the records before it.

        The offset deltas of its records must be 0, 1, 2 …, as brokers require.
        """
        self._check_open("send")
        BatchView(batch)  # Raises an error unless it is one whole batch.
        try:
            (await self._delivery.topic(topic)).check_partition(partition)
        except KafscaleError as error:
            raise self._failed(error) from error
        if self._delivery.collector((topic, partition)):
            await self._dispatch((topic, partition))
        await self._delivery.send((topic, partition), batch)

    async def send_offsets(
        self, group: GroupMembership, offsets: Mapping[TopicPartition, int], *, metadata: str = ""
    ) -> None:
        """Commit the offsets of a group, of the next records to read, with the transaction."""
        self._check_open("send offsets")
        if not offsets:
            return
        try:
            if not self._delivery.is_version_2:
                await self._add(self._coordinator.add_group(self.producer, group.group_id))
            self._is_started = True
            await commit_in_transaction(
                self._client,
                self.transactional_id,
                self.producer,
                group,
                offsets,
                version_2=self._delivery.is_version_2,
                metadata=metadata,
                pause=self._pause,
            )
        except KafscaleError as error:
            raise self._failed(error) from error

    async def flush(self) -> None:
        """Send all records, and wait until they are durable."""
        self._check_open("flush")
        for topic_partition, _ in self._delivery.waiting():
            await self._dispatch(topic_partition)
        try:
            await self._delivery.wait()
        except KafscaleError as error:
            raise self._failed(error) from error

    # --- ending -------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Send all records, and commit; return when the decision is durable.

        If the outcome is unknown, because the coordinator is not reachable, `commit` may be called
        again.
        """
        if self.state is not State.COMMITTING:
            await self.flush()
            self.state = State.COMMITTING
        await self._end(committed=True)

    async def abort(self) -> None:
        """Drop records that were not sent, and abort."""
        self._check_state("abort", State.OPEN, State.FAILED, State.ABORTING)
        if self.state is State.OPEN:
            self._delivery.discard()
        self.state = State.ABORTING
        failure = await self._wait_for_failure()
        is_known = _code(failure) is not ErrorCode.INVALID_PRODUCER_ID_MAPPING
        await self._end(committed=False, is_known=is_known)
        keeps_epoch = not is_known or not self._delivery.is_version_2
        if failure is not None and keeps_epoch and self._is_started:
            # It is unknown which sequence numbers were stored: a new epoch starts them again.
            self.state = State.ABORTING
            try:
                renewed = await self._coordinator.init(self._settings.timeout_ms, self.producer)
            except KafscaleError as error:
                raise self._end_failed(error) from None
            self._delivery.use(renewed)
            self.state = State.READY

    async def detach(self) -> OpenTransaction:
        """Send all records, and hand over the transaction to a process that ends it (`detached`).

        This producer can be used no more, and its exit leaves the transaction open.
        """
        await self.flush()
        self.state = State.DONE
        return OpenTransaction(self.transactional_id, self.producer, self._delivery.is_version_2)

    # --- internals ----------------------------------------------------------------------------

    async def _dispatch(self, topic_partition: TopicPartition) -> None:
        batch = self._delivery.collector(topic_partition).take(self._settings.codec)
        await self._delivery.send(topic_partition, batch)

    async def _before_write(self, topic_partition: TopicPartition) -> None:
        """Make a partition part of the transaction; waiting partitions are added together."""
        if self._delivery.is_version_2:
            self._is_started = True
            return
        self._to_add.add(topic_partition)
        async with self._adding:
            if topic_partition not in self._added:
                added = frozenset(self._to_add)
                await self._add(self._coordinator.add_partitions(self.producer, added))
                self._added |= added
                self._to_add -= added

    async def _add(self, adding: Awaitable[None]) -> None:
        """Add to the transaction; it is started by that, unless the coordinator refuses."""
        is_refused = False
        try:
            await adding
        except BrokerResponseError as error:
            # EndTxn without a transaction would fail, and hide this error. After an error that is
            # retriable, such as a timeout, the coordinator may have added it all the same.
            is_refused = not is_retriable(error)
            raise
        finally:
            self._is_started = self._is_started or not is_refused

    async def _wait_for_failure(self) -> KafscaleError | None:
        """Wait until nothing is in flight; return the failure of the transaction."""
        self._delivery.discard()
        try:
            await self._delivery.wait()
        except KafscaleError as error:
            return error
        return None

    async def _end(self, *, committed: bool, is_known: bool = True) -> None:
        """End the transaction if the coordinator may know it."""
        if self._is_started and is_known:
            try:
                producer = await self._coordinator.end(
                    self.producer, committed=committed, version_2=self._delivery.is_version_2
                )
            except KafscaleError as error:
                raise self._end_failed(error) from None
            self._delivery.use(producer)
        self.state = State.READY

    def _end_failed(self, error: KafscaleError) -> KafscaleError:
        """The error of an end: it is repeated, or the transaction aborted, or the producer done."""
        abortable = {ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
        if is_retriable(error):
            return error  # The outcome is unknown.
        if self.state is State.COMMITTING and _code(error) in abortable:
            return self._failed(error)
        self.state = State.DONE
        return error

    def _failed(self, error: KafscaleError) -> KafscaleError:
        """The transaction has failed: the error to raise."""
        self._delivery.failure = self._delivery.failure or error
        if isinstance(error, ProducerFencedError | ProtocolError) or _code(error) in FATAL_ERRORS:
            self.state = State.DONE
            return error
        self.state = State.FAILED
        failed = AbortableTransactionError(
            f"the transaction of {self.transactional_id} has to be aborted: {error}"
        )
        failed.__cause__ = error
        return failed

    def _check_open(self, operation: str) -> None:
        if self.state is State.FAILED or (
            self.state is State.OPEN and self._delivery.failure is not None
        ):
            assert self._delivery.failure is not None
            raise self._failed(self._delivery.failure)
        self._check_state(operation, State.OPEN)

    def _check_state(self, operation: str, *allowed: State) -> None:
        if self.state not in allowed:
            raise InvalidTransactionStateError(
                f"the producer of {self.transactional_id} cannot {operation} in the state"
                f" {self.state.name}"
            )


def _code(error: KafscaleError | None) -> ErrorCode | None:
    return error.error_code if isinstance(error, BrokerResponseError) else None
