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
  error: it means that the checkpoint of the query was rolled back, and has other records. So is the
  same number with another count of records, which is the metadata of the offset.

The offset is kept with the first topic of the micro-batch, in its partition 0, because brokers keep
offsets of existing topics only; the greatest of all topics counts.

The metadata is the count of records, and not a checksum of them, because that must be equal when
Spark repeats a micro-batch: its tasks have other orders and times then, and functions such as
`uuid()` return other values. After a checkpoint is rolled back, Spark plans the micro-batch from
the same position of the source to where that ends now, so the count mostly differs.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kafscale.client.client import Client
from kafscale.client.errors import (
    AbortableTransactionError,
    BrokerResponseError,
    Pause,
    is_retriable,
    retry,
)
from kafscale.client.transactions.group_commit import GroupMembership, stable_offsets
from kafscale.client.transactions.producer import State, TransactionalProducer, TransactionSettings
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.error_codes import ErrorCode
from kafscale.records import BatchView
from kafscale.spark.sink.task import TaskOutput
from kafscale.text.topic_partition import TopicPartition

ATTEMPTS_MAX: Final = 3
"""How often a transaction is begun, if its failure may not happen again."""

ENDED_BY_OTHERS: Final = frozenset(
    (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
)
"""Errors after another driver, or the timeout, has ended the transaction."""

_METADATA: Final = re.compile(r"records=([0-9]+)")

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
            if micro_batch is not None and await _is_written(client, micro_batch, batches, pause):
                return False
            await _write(producer, batches, micro_batch, pause)
        except BrokerResponseError as error:
            hint = _hint(error.error_code, settings)
            if not hint:
                raise
            raise error.with_hint(hint) from None
    return True


def _hint(code: ErrorCode, settings: TransactionSettings) -> str:
    if code in ENDED_BY_OTHERS:
        return (
            "another driver of this query runs, or the transaction was open for longer than"
            " kafka.transaction.timeout.ms"
        )
    if code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return (
            f"kafka.transaction.timeout.ms is {settings.timeout_ms}, but must not exceed"
            " transaction.max.timeout.ms of the brokers, by default 900000"
        )
    return ""


async def _is_written(
    client: Client, micro_batch: MicroBatch, batches: Batches, pause: Pause
) -> bool:
    group_id, number = micro_batch
    offsets = (await stable_offsets(client, group_id, pause=pause)).values()
    last = max(offsets, default=None, key=lambda each: each.offset)
    if last is None or last.offset <= number:
        return False
    written = last.offset - 1
    if written > number:
        raise InvalidRequestError(
            f"micro-batch {written} was written, but Spark repeats {number}: the checkpoint was"
            " copied or rolled back. To write these records again, set another"
            " transactionalIdPrefix"
        )
    known = _METADATA.fullmatch(last.metadata)
    count = _record_count(batches)
    if known is not None and int(known[1]) != count:
        raise InvalidRequestError(
            f"micro-batch {number} was written with {known[1]} records, but Spark repeats it with"
            f" {count}: the checkpoint was copied or rolled back, or the query returns another"
            " number of records each time. To write these records, and some of them again, set"
            " another transactionalIdPrefix; to leave them out: kafscale group reset-offsets"
            f" {group_id} --all-topics --to-current --execute"
        )
    return True


def _record_count(batches: Batches) -> int:
    return sum(BatchView(batch).count for each in batches.values() for batch in each)


async def _write(
    producer: TransactionalProducer, batches: Batches, micro_batch: MicroBatch | None, pause: Pause
) -> None:
    """Write one transaction; begin it again if it failed and another may succeed."""
    for attempt in range(ATTEMPTS_MAX):
        await producer.begin()
        try:
            await _send_all(producer, batches)
            if micro_batch is not None:
                group = GroupMembership(micro_batch.group_id)
                marked = (min(batches)[0], 0)
                metadata = f"records={_record_count(batches)}"
                offsets = {marked: micro_batch.number + 1}
                await producer.send_offsets(group, offsets, metadata=metadata)
            await producer.flush()
            await retry(producer.commit, lambda error: _is_unknown(producer, error), pause)
        except AbortableTransactionError as error:
            await producer.abort()
            if attempt + 1 == ATTEMPTS_MAX or not _may_succeed(error.__cause__):
                raise
        else:
            return


def _is_unknown(producer: TransactionalProducer, error: KafscaleError) -> bool:
    """Whether it is unknown if the transaction was committed; the commit is then repeated."""
    return producer.state is State.COMMITTING and is_retriable(error)


def _may_succeed(cause: BaseException | None) -> bool:
    """Whether another transaction may succeed after one that failed with this error."""
    if isinstance(cause, BrokerResponseError):
        is_demanded = cause.error_code is ErrorCode.TRANSACTION_ABORTABLE
        return is_demanded or cause.error_code.retriable
    return isinstance(cause, KafscaleError) and is_retriable(cause)


async def _send_all(producer: TransactionalProducer, batches: Batches) -> None:
    """Send all batches; if that fails, return only when nothing sends any more."""

    async def send(topic_partition: TopicPartition) -> None:
        for batch in batches[topic_partition]:
            await producer.send_batch(*topic_partition, batch)

    outcomes = await asyncio.gather(*map(send, batches), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
