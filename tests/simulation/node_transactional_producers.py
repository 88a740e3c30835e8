"""Transactional producers of simulated brokers.

A producer sends to several partitions and commits offsets of a group; it follows the protocol with
or without KIP-890, and gives up a transaction that has an error.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from doubles.virtual_time import clock_ms
from kafscale.broker.transaction_coordinator.transactions import offsets_partition
from kafscale.broker.transaction_coordinator.verification import produce_error
from kafscale.errors import (
    ConcurrentTransactionsError,
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    KafscaleError,
    NotCoordinatorError,
    NotOwnerError,
    OperatingError,
    OverloadedError,
    UnverifiedTransactionError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.records import BatchView, Record, build
from kafscale.storage.log.appends import AppendResult
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.transactions.effects import ProducerInitialized, TransactionEnded
from kafscale.transactions.model import TransactionVersion
from simulation.model import InvariantViolationError, SimulatedTopic
from simulation.node_clients import ChooseNode, wait_durable
from simulation.node_cluster import NodeCluster
from simulation.node_process import NodeProcess
from simulation.node_transactions import NodeTransaction, NodeTransactions
from simulation.outcomes import Outcome

READ_TOPIC = "read"
"""The topic that groups have offsets of; offsets of deleted topics are dropped."""
RESPONSE_SECONDS_MAX = 10.0
TRIES_MAX = 20
TIMEOUTS_MS = (5_000, 20_000, 60_000)

RETRIABLE = (
    ConcurrentTransactionsError,
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
    NotOwnerError,
    OperatingError,
    OverloadedError,
    UnverifiedTransactionError,
)

Result = TypeVar("Result")


class GivenUpError(Exception):
    """A request has no final response, or one that ends the transaction."""


class TransactionalProducer:
    """A transactional id, a group of its own, and the producer that uses them."""

    def __init__(
        self, cluster: NodeCluster, number: int, transactions: NodeTransactions, choose: ChooseNode
    ) -> None:
        self.id = f"transfers-{number}"
        self.group = f"readers-{number}"
        self.is_stopped = False
        self._cluster = cluster
        self._random = cluster.random
        self._number = number
        self._transactions = transactions
        self._choose = choose
        self._is_classic = self._random.random() < 0.3
        self._timeout_ms = self._random.choice(TIMEOUTS_MS)
        self._producer: ProducerInitialized | TransactionEnded | None = None
        self._sequences: dict[tuple[bytes, int], int] = {}
        self._counter = 0
        self._with_offsets: list[NodeTransaction] = []
        transactions.groups.append(self.group)

    async def run(self, count: int) -> None:
        for _ in range(count):
            if self.is_stopped:
                return
            try:
                await self._run_transaction()
            except GivenUpError:
                self._producer = None
            await asyncio.sleep(self._random.choice((0, 0, 0.1, 1, 5)))

    async def check_offset(self) -> None:
        """The committed offset is that of the last transaction that was committed."""
        try:
            fetched = await self._ask(self.group, self._fetch)
        except GivenUpError as error:
            raise InvariantViolationError(f"{self.group} has no coordinator") from error
        for transaction in self._with_offsets:
            assert transaction.offset is not None
            if fetched is not None and transaction.offset == fetched:
                transaction.observe(Outcome.COMMITTED)
            elif fetched is None or transaction.offset > fetched:
                transaction.observe(Outcome.ABORTED)
        offsets = {each.offset for each in self._with_offsets}
        if fetched is not None and fetched not in offsets:
            raise InvariantViolationError(f"{self.group} has offset {fetched} of no transaction")

    async def _fetch(self, node: NodeProcess) -> int | None:
        fetched = node.groups.fetch(self.group, None, -1)
        return next((each.offset for each in fetched.values()), None)

    # --- transactions -----------------------------------------------------------------------------

    async def _run_transaction(self) -> None:
        if self._producer is None:
            self._producer = await self._ask(self.id, self._initialize)
            self._sequences.clear()
        transaction = NodeTransaction(f"{self.id} {self._next_number()}")
        attempts = [*self._cluster.attempts.values()]
        for _ in range(self._random.randint(1, 4)):
            # Other topics may be deleted, which ends most transactions.
            topic = self._random.choice(
                attempts[-2:] if self._random.random() < 0.2 else attempts[:1]
            )
            partition = self._random.randrange(len(topic.partitions))
            if not topic.is_deleted:
                await self._send(transaction, topic, partition)
            await self._read_committed(topic, partition)
            await asyncio.sleep(self._random.choice((0, 0, 0.01, 0.5)))
        if self._random.random() < 0.5:
            await self._commit_offset(transaction)
        is_commit = self._random.random() < 0.7
        if is_commit:
            transaction.request_commit()
        if self._random.random() < 0.1:
            raise GivenUpError  # The client has crashed.
        ended = await self._ask(self.id, partial(self._end, is_commit=is_commit))
        transaction.observe(Outcome.COMMITTED if is_commit else Outcome.ABORTED)
        if not self._is_classic:
            self._producer = ended
            self._sequences.clear()

    async def _read_committed(self, topic: SimulatedTopic, partition: int) -> None:
        """Read what is new, now that other transactions may be open."""
        node = self._choose(topic.name, partition)
        with suppress(NotOwnerError, OverloadedError):
            log = node.find("", topic.id, partition)
            await self._call(node, lambda: self._transactions.read_new(node, log))

    async def _initialize(self, node: NodeProcess) -> ProducerInitialized:
        return await node.transactions.coordinator.init_producer(self.id, self._timeout_ms)

    async def _end(self, node: NodeProcess, *, is_commit: bool) -> TransactionEnded:
        version = TransactionVersion.V0 if self._is_classic else TransactionVersion.V2
        return await node.transactions.coordinator.end(
            *self._identity, is_commit=is_commit, version=version
        )

    @property
    def _identity(self) -> tuple[str, int, int]:
        assert self._producer is not None
        return self.id, self._producer.producer_id, self._producer.epoch

    # --- records ----------------------------------------------------------------------------------

    async def _send(
        self, transaction: NodeTransaction, topic: SimulatedTopic, partition: int
    ) -> None:
        if self._is_classic:
            await self._add([(topic.name, partition)])
        values = [
            b"%d-%d in a transaction" % (self._number, self._next_number())
            for _ in range(self._random.choice((1, 1, 2, 3)))
        ]
        for value in values:
            self._transactions.add(value, transaction)
        sequence = self._sequences.get((topic.id, partition), 0)
        now_ms = clock_ms()
        _, producer_id, epoch = self._identity
        data = build(
            [Record(index, now_ms, None, value) for index, value in enumerate(values)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        base_offset = await self._deliver(topic, partition, bytes(data))
        if not topic.is_deleted:
            model = self._cluster.model(topic.id, partition)
            for index, value in enumerate(values):
                model.record(base_offset + index, value, now_ms)
        self._sequences[topic.id, partition] = sequence + len(values)

    def _next_number(self) -> int:
        self._counter += 1
        return self._counter

    async def _deliver(self, topic: SimulatedTopic, partition: int, data: bytes) -> int:
        for _ in range(TRIES_MAX):
            if self.is_stopped or topic.is_deleted:
                break
            node = self._choose(topic.name, partition)
            try:
                log = node.find("", topic.id, partition)
                batch = BatchView(bytearray(data))
                appended = await self._call(node, lambda: self._append(node, log, batch))  # noqa: B023
            except RETRIABLE:
                pass
            except KafscaleError as error:
                raise GivenUpError from error
            else:
                if appended is not None and await wait_durable(node, appended.durable):
                    return appended.base_offset
            await asyncio.sleep(self._random.uniform(0.05, 0.5))
        raise GivenUpError

    async def _append(self, node: NodeProcess, log: PartitionLog, batch: BatchView) -> AppendResult:
        """Append as the handler of Produce does."""
        header = batch.header()
        guard = None
        if log.needs_verification(header):
            guard = log.start_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                adds_partition=not self._is_classic,
            )
            verifier = node.transactions.verifier
            ask = verifier.verify if self._is_classic else verifier.add
            partition = (log.topic, log.partition)
            errors = await ask(*self._identity, [partition])
            if (error := errors[partition]) is not None:
                raise produce_error(error, knows_abortable=True)
        return log.append(batch, node.clock(), header, guard)

    async def _add(self, partitions: Sequence[tuple[str, int]]) -> None:
        await self._ask(
            self.id,
            lambda node: node.transactions.coordinator.add_partitions(*self._identity, partitions),
        )

    # --- offsets ----------------------------------------------------------------------------------

    async def _commit_offset(self, transaction: NodeTransaction) -> None:
        if self._is_classic:
            await self._add([offsets_partition(self.group)])
        offset = self._next_number()
        await self._ask(self.group, partial(self._commit_offset_at, offset=offset))
        transaction.offset = offset
        self._with_offsets.append(transaction)

    async def _commit_offset_at(self, node: NodeProcess, *, offset: int) -> None:
        """Commit as the handler of TxnOffsetCommit does."""
        transactional_id, producer_id, epoch = self._identity
        guard = node.groups.start_verification(
            self.group, producer_id, epoch, adds_partition=not self._is_classic
        )
        if guard is not None:
            await node.transactions.verify_offsets(
                transactional_id,
                producer_id,
                epoch,
                self.group,
                adds_partition=not self._is_classic,
            )
        committed = CommittedOffset(offset=offset, committed_ms=node.clock())
        await node.groups.commit_in_transaction(
            self.group,
            "",
            None,
            -1,
            producer_id=producer_id,
            producer_epoch=epoch,
            offsets={(READ_TOPIC, 0): committed},
            guard=guard,
        )

    # --- requests ---------------------------------------------------------------------------------

    async def _ask(self, name: str, request: Callable[[NodeProcess], Awaitable[Result]]) -> Result:
        """Ask the coordinator of a group or a transactional id."""
        for _ in range(TRIES_MAX):
            node = self._choose(SHARDS_TOPIC, shard_of(name))
            try:
                if node.is_ready and not node.process.is_paused:
                    return await self._call(node, lambda: request(node))  # noqa: B023
            except RETRIABLE:
                pass
            except KafscaleError as error:
                raise GivenUpError from error
            await asyncio.sleep(self._random.uniform(0.05, 1))
        raise GivenUpError

    async def _call(self, node: NodeProcess, request: Callable[[], Awaitable[Any]]) -> Any:
        """The response of a process; raises `OverloadedError` if there is none in time.

        A classic producer gives up then: without another epoch, a late request would take effect
        in its next transaction.
        """
        task = node.call(request)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({task}, timeout=RESPONSE_SECONDS_MAX)
        if not task.done() or task.cancelled():
            raise GivenUpError if self._is_classic else OverloadedError("no response in time")
        return task.result()
