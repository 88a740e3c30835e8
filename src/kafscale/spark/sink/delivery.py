"""The driver's part of the sink: writes the batches of all tasks in one transaction.

A micro-batch is written exactly once, because one transaction has all of its records and, as an
offset of a group, the number of the micro-batch after it. Invariants:

* The driver first initializes the producer of the query: this fences every other driver of it, a
  killed one included, and ends its open transaction. What the group has then is final. A repeated
  micro-batch that it has already is not written again.
* Nothing is prepared: until the coordinator has made the decision to commit, which it completes by
  itself, nothing of the micro-batch counts. So a driver may die or stay away at any time and for
  any length: the transaction was either committed as a whole, or the coordinator aborts it, after
  its timeout or when the driver returns. A half of it can never be committed.
* The numbers of micro-batches that are written ascend. A number that is more than one behind is an
  error: it means that the checkpoint of the query was rolled back, and has other records.

The offset is kept with the first topic of the micro-batch, in its partition 0, because brokers keep
offsets of existing topics only; the greatest of all topics counts.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kafscale.client.client import Client
from kafscale.client.coordinator import Coordinator
from kafscale.client.errors import (
    AbortableTransactionError,
    BrokerResponseError,
    Pause,
    is_retriable,
    retry,
)
from kafscale.client.group_offsets import committed
from kafscale.client.transactions.group_commit import GroupMembership
from kafscale.client.transactions.producer import State, TransactionalProducer, TransactionSettings
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.spark.sink.task import TaskOutput
from kafscale.text.topic_partition import TopicPartition

ATTEMPTS_MAX: Final = 3
"""How often a transaction is begun, if brokers make the producer abort it."""

ENDED_BY_OTHERS: Final = frozenset(
    (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
)
"""Errors after another driver, or the timeout, has ended the transaction."""

Batches = Mapping[TopicPartition, Sequence[bytearray]]


class MicroBatch(NamedTuple):
    """The number of a micro-batch, and the group whose offset counts the micro-batches."""

    group_id: str
    number: int


def collect(outputs: Iterable[TaskOutput | None]) -> tuple[str, Batches]:
    """Return the id of the query, and the batches of all tasks in the order of tasks."""
    batches: dict[TopicPartition, list[bytearray]] = {}
    query_ids = set()
    for output in outputs:
        if output is None:
            raise InvalidRequestError("a task has no result, so nothing can be committed")
        query_ids.add(output.query_id)
        for topic_partition, more in output.batches.items():
            batches.setdefault(topic_partition, []).extend(more)
    (query_id,) = query_ids or {""}
    return query_id, batches


async def deliver(
    client: Client,
    transactional_id: str,
    settings: TransactionSettings,
    batches: Batches,
    micro_batch: MicroBatch | None = None,
    *,
    pause: Pause = asyncio.sleep,
) -> bool:
    """Write the batches, all or nothing; return False if the micro-batch was written before."""
    producer = TransactionalProducer(client, transactional_id, settings, pause=pause)
    async with producer:
        try:
            await retry(producer.init, pause=pause)
            if micro_batch is not None and await _is_written(client, micro_batch, pause):
                return False
            await _write(producer, batches, micro_batch, pause)
        except BrokerResponseError as error:
            if error.error_code not in ENDED_BY_OTHERS:
                raise
            raise error.with_hint(
                "another driver of this query runs, or the transaction was open for longer than"
                " kafka.transaction.timeout.ms"
            ) from None
    return True


async def _is_written(client: Client, micro_batch: MicroBatch, pause: Pause) -> bool:
    async with Coordinator(client, micro_batch.group_id, pause=pause) as coordinator:
        offsets = await committed(coordinator, stable=True, pause=pause)
    written = max((each.offset for each in offsets.values()), default=0) - 1
    if written > micro_batch.number:
        raise InvalidRequestError(
            f"micro-batch {written} was written, but Spark repeats {micro_batch.number}: the"
            " checkpoint was copied or rolled back. To write these records again, set another"
            " transactionalIdPrefix"
        )
    return written == micro_batch.number


async def _write(
    producer: TransactionalProducer, batches: Batches, micro_batch: MicroBatch | None, pause: Pause
) -> None:
    """Write one transaction; begin it again if brokers require its abortion."""
    for attempt in range(ATTEMPTS_MAX):
        await producer.begin()
        try:
            await _send_all(producer, batches)
            if micro_batch is not None:
                group = GroupMembership(micro_batch.group_id)
                marked = (min(batches)[0], 0)
                await producer.send_offsets(group, {marked: micro_batch.number + 1})
            await producer.flush()
            await retry(producer.commit, lambda error: _is_unknown(producer, error), pause)
        except AbortableTransactionError as error:
            await producer.abort()
            is_demanded = _code(error) is ErrorCode.TRANSACTION_ABORTABLE
            if attempt + 1 == ATTEMPTS_MAX or not is_demanded:
                raise
        else:
            return


def _is_unknown(producer: TransactionalProducer, error: KafscaleError) -> bool:
    """Whether it is unknown if the transaction was committed; the commit is then repeated."""
    return producer.state is State.COMMITTING and is_retriable(error)


def _code(error: AbortableTransactionError) -> ErrorCode | None:
    cause = error.__cause__
    return cause.error_code if isinstance(cause, BrokerResponseError) else None


async def _send_all(producer: TransactionalProducer, batches: Batches) -> None:
    """Send all batches; if that fails, return only when nothing sends any more."""

    async def send(topic_partition: TopicPartition) -> None:
        for batch in batches[topic_partition]:
            await producer.send_batch(*topic_partition, batch)

    outcomes = await asyncio.gather(*map(send, batches), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
