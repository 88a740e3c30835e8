"""A transactional producer for code that does not await: drivers and tasks of Spark jobs."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar

from kafscale.client.blocking import BlockingClient
from kafscale.client.client import Client
from kafscale.client.transactions.coordinator import ProducerIdentity
from kafscale.client.transactions.detached import OpenTransaction
from kafscale.client.transactions.group_commit import GroupMembership
from kafscale.client.transactions.producer import (
    DEFAULTS,
    State,
    TransactionalProducer,
    TransactionSettings,
)
from kafscale.records import Header
from kafscale.text.topic_partition import TopicPartition

_Result = TypeVar("_Result")


class BlockingTransactionalProducer:
    """`TransactionalProducer`, each of whose methods waits for its result. A context manager."""

    def __init__(
        self,
        client: BlockingClient,
        transactional_id: str,
        settings: TransactionSettings = DEFAULTS,
    ) -> None:
        async def create(kafka: Client) -> TransactionalProducer:
            return TransactionalProducer(kafka, transactional_id, settings)

        self._client = client
        self._producer = client.run(create)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exit_details: object) -> None:
        self._wait(self._producer.__aexit__(*exit_details))

    @property
    def state(self) -> State:
        return self._producer.state

    @property
    def producer(self) -> ProducerIdentity:
        return self._producer.producer

    def init(self) -> None:
        self._wait(self._producer.init())

    def begin(self) -> None:
        self._wait(self._producer.begin())

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> None:
        sending = self._producer.send(
            topic, value, key=key, headers=headers, timestamp_ms=timestamp_ms, partition=partition
        )
        self._wait(sending)

    def send_batch(self, topic: str, partition: int, batch: bytearray) -> None:
        self._wait(self._producer.send_batch(topic, partition, batch))

    def send_offsets(self, group: GroupMembership, offsets: Mapping[TopicPartition, int]) -> None:
        self._wait(self._producer.send_offsets(group, offsets))

    def flush(self) -> None:
        self._wait(self._producer.flush())

    def commit(self) -> None:
        self._wait(self._producer.commit())

    def abort(self) -> None:
        self._wait(self._producer.abort())

    def detach(self) -> OpenTransaction:
        return self._wait(self._producer.detach())

    def _wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        async def run(_: Client) -> _Result:
            return await work

        return self._client.run(run)
