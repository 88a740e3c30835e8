"""Produce: v0-13.

Behaviour:
* Each partition succeeds or fails on its own; its batch is validated, assigned offsets and passed
  to the WAL in the order of the requests. While a large batch is read in a thread, or a topic is
  created, later requests of the connection wait.
* Every record is read, so that no batch is stored that consumers cannot read: garbage and records
  without a key on a compacted topic are refused with INVALID_RECORD, compressed data that its codec
  cannot read with CORRUPT_MESSAGE. v8+ names the refused records (KIP-467).
* acks=0 has no response; an error closes the connection, as in Kafka. acks=1 is answered after the
  append, acks=-1 when the batch is durable, or with REQUEST_TIMED_OUT after `timeout_ms`: it may
  still become durable, and an idempotent producer that retries gets the offset of the first
  attempt. Its batches stay in order (`RefusedBatches`).
* With CreateTime, a batch with a record that is more than message.timestamp.after.max.ms ahead of
  the broker's clock is refused with INVALID_TIMESTAMP, so that no record delays retention; and so
  is one with a record older than message.timestamp.before.max.ms. A largest timestamp in the header
  that is not that of the records is corrected.
* A missing topic is auto-created if the broker's settings allow it.
* The first batch of a transaction in a partition is appended once the coordinator of the
  transaction has confirmed it; later requests of the connection wait. A partition that is not in
  the transaction is INVALID_TXN_STATE, a coordinator that cannot answer NOT_ENOUGH_REPLICAS.
* Requires WRITE on each topic, and CREATE on it or on the cluster to auto-create it, else
  TOPIC_AUTHORIZATION_FAILED, whether it exists or not; for transactional producers WRITE on their
  id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition.

Version notes:
* v0-2: message sets are converted to a batch. Some clients send batches already, as Kafka accepts.
* v3+: exactly one batch of magic 2 per partition.
* v7+: zstd; before, it is refused with UNSUPPORTED_COMPRESSION_TYPE.
* v10+: a broker that is not the leader returns the leader.
* v11+: TRANSACTION_ABORTABLE instead of INVALID_TXN_STATE, so that the producer aborts and
  continues.
* v12+: partitions are added to the transaction by producing to them (KIP-890).
* v13+: topics are identified by id.
"""

import asyncio
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Final, NamedTuple

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.shared import produce_results, topic_admission
from kafscale.broker.shared.partition_lookup import find_partition
from kafscale.broker.shared.produce_results import Pending
from kafscale.broker.shared.produced_batch import (
    BatchRules,
    ProducedBatch,
    read_in_thread,
    read_inline,
    rules_of,
)
from kafscale.broker.shared.transactions import admit
from kafscale.broker.transaction_coordinator.coordinator import PartitionErrors
from kafscale.broker.transaction_coordinator.verification import produce_error
from kafscale.errors import InvalidAcksError, KafscaleError, ThrottledError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.observability.logging import get_logger, is_debugging
from kafscale.protocol.messages.produce import (
    PartitionToProduce,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
    TopicToProduce,
)
from kafscale.records.batch import TRANSACTIONAL_BIT
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.state.transaction_state import VerificationGuard
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

NO_ACKS, LEADER_ACKS, ALL_ACKS = 0, 1, -1

ABORTABLE_ERROR_SINCE: Final = 11
ADDS_PARTITIONS_SINCE: Final = 12

_Result = ProduceResponse | asyncio.Future[ProduceResponse] | None

_Denied = set[str | bytes]
"""The topics that the client may not write to, by the name or id that it has sent."""


class _LargeBatch(NamedTuple):
    """A batch that takes too long to be read on the event loop."""

    topic: TopicToProduce
    partition: PartitionToProduce
    result: ProducedPartition
    log: PartitionLog
    records: memoryview
    rules: BatchRules


class _UnverifiedBatch(NamedTuple):
    """The first batch of a transaction in its partition; the coordinator has to confirm it."""

    topic: TopicToProduce
    partition: PartitionToProduce
    result: ProducedPartition
    log: PartitionLog
    batch: ProducedBatch


class _Appended(NamedTuple):
    """What has become of the batches of a request so far."""

    topics: list[ProducedTopic]
    pending: Pending
    """Those that are not durable yet."""
    large: list[_LargeBatch]
    unverified: list[_UnverifiedBatch]


def handle(
    context: RequestContext, request: ProduceRequest
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    if request.acks not in (NO_ACKS, LEADER_ACKS, ALL_ACKS):
        raise InvalidAcksError(f"invalid acks {request.acks}: expected 0, 1 or -1")
    if request.transactional_id is not None:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    context.broker.health.check_writable()
    denied = set() if context.broker.authorizer is None else _denied(context, request)
    missing = _missing(context, request, denied)
    if missing:
        return _append_in_order(context, _create_and_append(context, request, missing, denied))
    appended = _append(context, request, denied)
    if appended.large or appended.unverified:
        return _append_in_order(context, _append_later(context, request, appended))
    return _respond(context, request, appended)


def error_response(
    context: RequestContext, request: ProduceRequest, error: KafscaleError
) -> ProduceResponse | None:
    """The same error for every partition."""
    topics = [produce_results.refused_topic(context, topic, error) for topic in request.topics]
    return None if request.acks == NO_ACKS else ProduceResponse(topics=topics)


def _append(context: RequestContext, request: ProduceRequest, denied: _Denied) -> _Appended:
    """Append the batches; those that have to wait are left to `_append_later`."""
    if is_debugging(__name__):
        _log_request(request)
    appended = _Appended([], [], [], [])
    for topic in request.topics:
        appended.topics.append(_append_topic(context, request, topic, denied, appended))
    return appended


def _append_topic(
    context: RequestContext,
    request: ProduceRequest,
    topic: TopicToProduce,
    denied: _Denied,
    appended: _Appended,
) -> ProducedTopic:
    if denied and (topic.name or topic.topic_id) in denied:
        error = authorization_error(ResourceType.TOPIC, topic.name or topic.topic_id.hex())
        return produce_results.refused_topic(context, topic, error)
    results: list[ProducedPartition] = []
    for partition in topic.partitions:
        result = ProducedPartition(index=partition.index)
        results.append(result)
        try:
            produce_results.check_order(context, topic, partition)
            log = find_partition(context.broker, topic.name, topic.topic_id, partition.index)
            records = partition.records if partition.records is not None else memoryview(b"")
            topic_partition = (log.topic, log.partition)
            rules = rules_of(context.version, topic_partition, log.settings, context.received_ms)
            batch = read_inline(records, rules)
            if batch is None:
                appended.large.append(_LargeBatch(topic, partition, result, log, records, rules))
            elif batch.header.attributes & TRANSACTIONAL_BIT:
                unverified = _UnverifiedBatch(topic, partition, result, log, batch)
                _append_transactional(context, request, appended, unverified)
            else:
                _append_batch(context, appended, result, log, batch)
        except KafscaleError as error:
            produce_results.refuse(context, topic, partition, result, error)
    return ProducedTopic(name=topic.name, topic_id=topic.topic_id, partitions=results)


def _append_batch(
    context: RequestContext,
    appended: _Appended,
    result: ProducedPartition,
    log: PartitionLog,
    produced: ProducedBatch,
    *,
    guard: VerificationGuard | None = None,
) -> None:
    appending = log.append(produced.batch, context.received_ms, produced.header, guard)
    result.base_offset = appending.base_offset
    result.log_append_time_ms = appending.timestamp_ms
    result.log_start_offset = log.start_offset
    if appending.durable is not None:
        appended.pending.append((result, appending.durable))


def _append_transactional(
    context: RequestContext,
    request: ProduceRequest,
    appended: _Appended,
    unverified: _UnverifiedBatch,
) -> None:
    if request.transactional_id is None:
        raise authorization_error(ResourceType.TRANSACTIONAL_ID, "")
    log, batch = unverified.log, unverified.batch
    if log.needs_verification(batch.header):
        appended.unverified.append(unverified)
    else:
        _append_batch(context, appended, unverified.result, log, batch)


async def _append_later(
    context: RequestContext, request: ProduceRequest, appended: _Appended
) -> _Result:
    for topic, partition, result, log, records, rules in appended.large:
        try:
            batch = await read_in_thread(records, rules)
            if batch.header.attributes & TRANSACTIONAL_BIT:
                unverified = _UnverifiedBatch(topic, partition, result, log, batch)
                _append_transactional(context, request, appended, unverified)
            else:
                _append_batch(context, appended, result, log, batch)
        except KafscaleError as error:
            produce_results.refuse(context, topic, partition, result, error)
    if appended.unverified:
        await _append_verified(context, request, appended)
    return _respond(context, request, appended)


async def _append_verified(
    context: RequestContext, request: ProduceRequest, appended: _Appended
) -> None:
    """Append the first batches of transactions, if their coordinator confirms them."""
    adds_partition = context.version >= ADDS_PARTITIONS_SINCE
    by_producer: dict[tuple[int, int], list[tuple[_UnverifiedBatch, VerificationGuard]]] = {}
    for each in appended.unverified:
        header = each.batch.header
        try:
            guard = each.log.start_verification(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                adds_partition=adds_partition,
            )
        except KafscaleError as error:
            produce_results.refuse(context, each.topic, each.partition, each.result, error)
            continue
        by_producer.setdefault((header.producer_id, header.producer_epoch), []).append(
            (each, guard)
        )
    for producer, batches in by_producer.items():
        partitions = [(each.log.topic, each.log.partition) for each, _ in batches]
        errors = await _verify(context, request, producer, partitions)
        for (each, guard), partition in zip(batches, partitions, strict=True):
            try:
                if (refusal := errors[partition]) is not None:
                    knows_abortable = context.version >= ABORTABLE_ERROR_SINCE
                    raise produce_error(refusal, knows_abortable=knows_abortable)
                _append_batch(context, appended, each.result, each.log, each.batch, guard=guard)
            except KafscaleError as error:
                produce_results.refuse(context, each.topic, each.partition, each.result, error)


async def _verify(
    context: RequestContext,
    request: ProduceRequest,
    producer: tuple[int, int],
    partitions: list[TopicPartition],
) -> PartitionErrors:
    assert request.transactional_id is not None
    verifier = context.broker.transactions.verifier
    if context.version >= ADDS_PARTITIONS_SINCE:
        try:
            await admit(context, request.transactional_id, partitions)
        except KafscaleError as error:
            return dict.fromkeys(partitions, error)
        return await verifier.add(request.transactional_id, *producer, partitions)
    if not context.broker.config.transaction.partition_verification:
        return dict.fromkeys(partitions)
    return await verifier.verify(request.transactional_id, *producer, partitions)


def _append_in_order(
    context: RequestContext, appending: Coroutine[object, object, _Result]
) -> Awaitable[ProduceResponse | None]:
    """Hold back later requests of the connection until the batches of this one are appended."""
    task = asyncio.ensure_future(appending)
    context.client.hold = task
    return _result_of(task)


async def _result_of(appending: "asyncio.Future[_Result]") -> ProduceResponse | None:
    result = await appending
    return await result if isinstance(result, asyncio.Future) else result


def _respond(context: RequestContext, request: ProduceRequest, appended: _Appended) -> _Result:
    """The response, or the future of it if it has to wait until the batches are durable."""
    if request.acks == NO_ACKS:
        produce_results.raise_first_error(appended.topics)
        return None
    response = ProduceResponse(topics=appended.topics)
    waits = request.acks == ALL_ACKS or context.broker.config.storage.produce_sync_flush
    if not waits or not appended.pending:
        return produce_results.complete(context, request, response)
    return _respond_when_durable(context, request, response, appended.pending)


def _log_request(request: ProduceRequest) -> None:
    for topic in request.topics:
        for partition in topic.partitions:
            logger.debug(
                "produce_received",
                topic=topic.name or topic.topic_id.hex(),
                partition=partition.index,
                batch_size=len(partition.records or b""),
            )


def _respond_when_durable(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse, pending: Pending
) -> "asyncio.Future[ProduceResponse]":
    """The response, when all batches are durable or after the client's timeout.

    A future and callbacks instead of a coroutine: this runs for every request.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[ProduceResponse] = loop.create_future()
    futures = {future for _, future in pending}

    def finish() -> None:
        if not result.done():
            timer.cancel()
            produce_results.set_errors(pending)
            result.set_result(produce_results.complete(context, request, response))

    def on_batch_done(future: "asyncio.Future[None]") -> None:
        futures.discard(future)
        if not futures:
            finish()

    timer = loop.call_later(request.timeout_ms / 1000, finish)
    for future in tuple(futures):
        future.add_done_callback(on_batch_done)
    return result


async def _create_and_append(
    context: RequestContext, request: ProduceRequest, missing: list[str], denied: _Denied
) -> _Result:
    for name in missing:
        with suppress(ThrottledError):  # The topic stays unknown, so that the client retries.
            await topic_admission.auto_create(context, name, request.timeout_ms)
    return await _append_later(context, request, _append(context, request, denied))


def _denied(context: RequestContext, request: ProduceRequest) -> _Denied:
    topic_store = context.broker.topic_store
    denied: _Denied = set()
    for topic in request.topics:
        known = None if topic.name else topic_store.by_id.get(topic.topic_id)
        name = known.name if known else topic.name
        if name and not context.is_authorized(Operation.WRITE, ResourceType.TOPIC, name):
            denied.add(topic.name or topic.topic_id)
    return denied


def _missing(context: RequestContext, request: ProduceRequest, denied: _Denied) -> list[str]:
    """The topics to auto-create first; those that the client may not create are denied."""
    topics = context.broker.topic_store.visible
    if all(topic.name in topics or not topic.name for topic in request.topics):
        return []
    if not context.broker.config.topics.auto_create:
        return []
    named = [topic.name for topic in request.topics if topic.name and topic.name not in denied]
    missing = [name for name in named if name not in topics]
    allowed = topic_admission.authorized_to_create(context, missing)
    denied.update(set(missing) - allowed)
    return [name for name in missing if name in allowed]
