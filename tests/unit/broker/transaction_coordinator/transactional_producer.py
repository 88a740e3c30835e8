"""A transactional producer of the tests: Kafka's protocol in either version, with its retries."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from doubles import virtual_time
from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest
from kafscale.protocol.messages.add_partitions_to_txn import (
    ADD_PARTITIONS_TO_TXN,
    AddPartitionsToTxnRequest,
    TopicToAdd,
)
from kafscale.protocol.messages.end_txn import END_TXN, EndTxnRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from kafscale.protocol.messages.produce import (
    PRODUCE,
    PartitionToProduce,
    ProduceRequest,
    TopicToProduce,
)
from kafscale.protocol.messages.txn_offset_commit import (
    TXN_OFFSET_COMMIT,
    PartitionToCommit,
    TopicToCommit,
    TxnOffsetCommitRequest,
)
from kafscale.records import Record, build
from unit.broker.in_memory_broker import InMemoryBroker
from unit.broker.transaction_coordinator.transactional_cluster import (
    RESPONSE_SECONDS,
    TransactionCluster,
)

TRIES_SECONDS = 120
RETRY_SECONDS = 0.1
TIMEOUT_MS = 60_000

RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class RejectedError(Exception):
    """A response with an error that a client does not retry."""

    def __init__(self, api: Api[Any, Any], code: int) -> None:
        super().__init__(f"{api.name}: {ErrorCode.of(code).name}")
        self.code = ErrorCode.of(code)


class TransactionalProducer:
    """A producer, of the protocol before KIP-890 if it `is_classic`."""

    def __init__(
        self,
        cluster: TransactionCluster,
        transactional_id: str,
        *,
        is_classic: bool = False,
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        self.id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self._cluster = cluster
        self._is_classic = is_classic
        self._timeout_ms = timeout_ms
        self.codes: list[int] = []
        """The error codes of all responses."""
        self._sequences: dict[tuple[str, int], int] = {}

    async def initialize(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=self._timeout_ms
        )
        response = await self._ask_coordinator(INIT_PRODUCER_ID, request, 5)
        self._continue_as(response.producer_id, response.producer_epoch)

    async def add_partition(self, topic: str, partition: int) -> None:
        request = AddPartitionsToTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TopicToAdd(topic, [partition])],
        )
        await self._ask_coordinator(ADD_PARTITIONS_TO_TXN, request, 3, _first_result)

    async def send(self, topic: str, partition: int, value: bytes) -> None:
        if self._is_classic:
            await self.add_partition(topic, partition)
        await self.send_without_adding(topic, partition, value)

    async def send_without_adding(self, topic: str, partition: int, value: bytes) -> None:
        sequence = self._sequences.get((topic, partition), 0)
        batch = build(
            [Record(0, virtual_time.clock_ms(), None, value)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        records = PartitionToProduce(index=partition, records=memoryview(bytes(batch)))
        request = ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=RESPONSE_SECONDS * 1000,
            topics=[TopicToProduce(name=topic, partitions=[records])],
        )
        await self._ask(
            lambda: self._cluster.owner(topic, partition),
            PRODUCE,
            request,
            11 if self._is_classic else 12,
            _first_partition,
        )
        self._sequences[topic, partition] = sequence + 1

    async def commit_offset(self, group: str, topic: str, offset: int) -> None:
        if self._is_classic:
            added = AddOffsetsToTxnRequest(self.id, self.producer_id, self.epoch, group)
            await self._ask_coordinator(ADD_OFFSETS_TO_TXN, added, 3)
        request = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TopicToCommit(topic, [PartitionToCommit(index=0, committed_offset=offset)])],
        )
        await self._ask(
            lambda: self._cluster.coordinator(group),
            TXN_OFFSET_COMMIT,
            request,
            4 if self._is_classic else 5,
            _first_partition,
        )

    async def end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(self.id, self.producer_id, self.epoch, is_commit)
        response = await self._ask_coordinator(END_TXN, request, 4 if self._is_classic else 5)
        if not self._is_classic:
            self._continue_as(response.producer_id, response.producer_epoch)

    def _continue_as(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences.clear()

    # --- requests ---------------------------------------------------------------------------------

    async def _ask_coordinator(
        self,
        api: Api[Any, Any],
        request: Message,
        version: int,
        code: Callable[[Any], int] = lambda response: response.error_code,
    ) -> Any:
        return await self._ask(
            lambda: self._cluster.coordinator(self.id), api, request, version, code
        )

    async def _ask(
        self,
        find: Callable[[], Awaitable[InMemoryBroker | None]],
        api: Api[Any, Any],
        request: Message,
        version: int,
        code: Callable[[Any], int],
    ) -> Any:
        """Send a request to the broker that `find` returns, until it has a final response."""
        async with asyncio.timeout(TRIES_SECONDS):
            while True:
                broker = await find()
                if broker is not None:
                    response = await self._cluster.call(
                        broker.services.node_id, lambda broker: broker.ask(api, request, version)
                    )
                    if response is not None:
                        self.codes.append(code(response))
                        if code(response) not in RETRIABLE:
                            break
                await asyncio.sleep(RETRY_SECONDS)
        if code(response) != ErrorCode.NONE:
            raise RejectedError(api, code(response))
        return response


def _first_result(response: Any) -> int:
    return response.topics[0].partitions[0].error_code


_first_partition = _first_result
