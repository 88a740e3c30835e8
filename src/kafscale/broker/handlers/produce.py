"""Produce: v0-13.

Behaviour:
* Each partition succeeds or fails on its own; its batch is validated, assigned offsets and passed
  to the WAL in the order of the requests. Records inside a batch are not read.
* acks=0 has no response; an error closes the connection, as in Kafka. acks=1 is answered after the
  append, acks=-1 when the batch is durable, or with REQUEST_TIMED_OUT after `timeout_ms`: it may
  still become durable, and an idempotent producer that retries gets the offset of the first
  attempt.
* With CreateTime, a batch whose largest timestamp is more than message.timestamp.after.max.ms ahead
  of the broker's clock is refused with INVALID_TIMESTAMP, so that no record delays retention; and
  so is one whose first record is older than message.timestamp.before.max.ms. Kafka checks every
  record. The header has no smallest timestamp, so older records behind the first are accepted.
* A missing topic is auto-created if the broker's settings allow it.
* Requires WRITE on each topic, and CREATE on it or on the cluster to auto-create it, else
  TOPIC_AUTHORIZATION_FAILED, whether it exists or not; for transactional producers WRITE on their
  id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED for every partition.

Version notes:
* v0-2: message sets are converted to a batch. Some clients send batches already, as Kafka accepts.
* v3+: exactly one batch of magic 2 per partition.
* v7+: zstd; before, it is refused with UNSUPPORTED_COMPRESSION_TYPE.
* v10+: a broker that is not the leader returns the leader.
* v13+: topics are identified by id.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.partition_lookup import (
    WRONG_LEADER_ERRORS,
    current_leader,
    find_partition,
    leader_nodes,
)
from kafscale.errors import (
    InvalidAcksError,
    InvalidTimestampError,
    InvalidTransactionStateError,
    KafscaleError,
    OverloadedError,
    RefusedError,
    ThrottledError,
    TopicAuthorizationError,
    UnsupportedCodecError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic
from kafscale.observability.logging import get_logger, is_debugging
from kafscale.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionToProduce,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
    TopicToProduce,
)
from kafscale.records import BatchView, Codec, TimestampType, single_batch, up_convert
from kafscale.records.batch import (
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from kafscale.storage.log.config import LogSettings
from kafscale.storage.log.partition_log import AppendResult, PartitionLog

logger = get_logger(__name__)

NO_ACKS, LEADER_ACKS, ALL_ACKS = 0, 1, -1

LEADERS_SINCE = 10

DECOMPRESSION_FACTOR_MAX = 8
"""The decompressed size limit of a message set, as a multiple of max.message.bytes."""
MESSAGES_MAX = 10_000
"""The number of messages in a message set, whose conversion takes some 20 us each. It is also the
default limit of librdkafka's batches."""

_Pending = list[tuple[ProducedPartition, "asyncio.Future[None]"]]

_Denied = set[str | bytes]
"""The topics that the client may not write to, by the name or id that it has sent."""


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
        return _create_and_append(context, request, missing, denied)
    return _append(context, request, denied)


def error_response(
    _context: RequestContext, request: ProduceRequest, error: KafscaleError
) -> ProduceResponse | None:
    """The same error for every partition."""
    if request.acks == NO_ACKS:
        return None
    return ProduceResponse(topics=[_failed_topic(topic, error) for topic in request.topics])


def _append(
    context: RequestContext, request: ProduceRequest, denied: _Denied
) -> "ProduceResponse | asyncio.Future[ProduceResponse] | None":
    if is_debugging():
        _log_request(request)
    pending: _Pending = []
    topics = [_append_topic(context, topic, denied, pending) for topic in request.topics]
    if request.acks == NO_ACKS:
        _raise_first_error(topics)
        return None
    response = ProduceResponse(topics=topics)
    waits = request.acks == ALL_ACKS or context.broker.config.storage.produce_sync_flush
    if not waits or not pending:
        return _complete(context, request, response)
    return _respond_when_durable(context, request, response, pending)


def _append_topic(
    context: RequestContext, topic: TopicToProduce, denied: _Denied, pending: _Pending
) -> ProducedTopic:
    if denied and (topic.name or topic.topic_id) in denied:
        return _failed_topic(
            topic, authorization_error(ResourceType.TOPIC, topic.name or topic.topic_id.hex())
        )
    produced: list[ProducedPartition] = []
    for partition in topic.partitions:
        try:
            log = find_partition(context.broker, topic.name, topic.topic_id, partition.index)
            appended = _append_partition(context, log, partition)
        except KafscaleError as error:
            produced.append(_failed(partition.index, error))
            continue
        result = ProducedPartition(
            index=partition.index,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.timestamp_ms,
            log_start_offset=log.start_offset,
        )
        if appended.durable is not None:
            pending.append((result, appended.durable))
        produced.append(result)
    return ProducedTopic(name=topic.name, topic_id=topic.topic_id, partitions=produced)


def _append_partition(
    context: RequestContext, log: PartitionLog, partition: PartitionToProduce
) -> AppendResult:
    batch = _batch(context.version, log, partition.records)
    header = batch.validate(size_bytes_max=log.settings.message_bytes_max)
    if context.version < 7 and batch.codec is Codec.ZSTD:
        raise UnsupportedCodecError("zstd needs Produce v7 or later")
    if header.attributes & TRANSACTIONAL_BIT:
        raise InvalidTransactionStateError("transactions are not supported")
    _check_timestamps(header, log.settings, context.received_ms)
    return log.append(batch, context.received_ms, header)


def _check_timestamps(header: BatchHeader, settings: LogSettings, now_ms: int) -> None:
    """Refuse a batch whose largest timestamp is too far ahead, or whose first is too old."""
    if settings.timestamp_type is not TimestampType.CREATE_TIME:
        return
    newest_ms, first_ms = header.max_timestamp_ms, header.base_timestamp_ms
    if newest_ms - now_ms > settings.timestamp_after_max_ms:
        timestamp_ms = newest_ms
    elif first_ms != NO_TIMESTAMP and now_ms - first_ms > settings.timestamp_before_max_ms:
        timestamp_ms = first_ms
    else:
        return
    raise InvalidTimestampError(
        f"timestamp {timestamp_ms} is out of range: expected"
        f" {now_ms - settings.timestamp_before_max_ms} to"
        f" {now_ms + settings.timestamp_after_max_ms} (message.timestamp.before.max.ms and"
        " message.timestamp.after.max.ms of the topic)"
    )


def _log_request(request: ProduceRequest) -> None:
    for topic in request.topics:
        for partition in topic.partitions:
            logger.debug(
                "produce_received",
                topic=topic.name or topic.topic_id.hex(),
                partition=partition.index,
                batch_size=len(partition.records or b""),
            )


def _batch(version: int, log: PartitionLog, records: memoryview | None) -> BatchView:
    records = records if records is not None else memoryview(b"")
    if version < 3 and len(records) > MAGIC_POSITION and records[MAGIC_POSITION] < MAGIC:
        bytes_max = DECOMPRESSION_FACTOR_MAX * log.settings.message_bytes_max
        converted = up_convert(records, decompressed_bytes_max=bytes_max, messages_max=MESSAGES_MAX)
        return BatchView(bytearray(converted))
    return single_batch(records)


def _respond_when_durable(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse, pending: _Pending
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
            _set_errors(pending)
            result.set_result(_complete(context, request, response))

    def on_batch_done(future: "asyncio.Future[None]") -> None:
        futures.discard(future)
        if not futures:
            finish()

    timer = loop.call_later(request.timeout_ms / 1000, finish)
    for future in tuple(futures):
        future.add_done_callback(on_batch_done)
    return result


def _set_errors(pending: _Pending) -> None:
    """Set the errors of batches that are not durable yet, or never will be."""
    for result, future in pending:
        error: BaseException | None
        if future.done():
            error = future.exception()
        else:
            error = OverloadedError("the records are not durable yet")
        if error is not None:
            assert isinstance(error, KafscaleError)
            result.error_code = error.code
            result.error_message = str(error)
            result.base_offset = -1


def _complete(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> ProduceResponse:
    """Count a response whose partitions have their results, and add the leaders it has to name."""
    failed_count = _count(context, request, response)
    if failed_count and context.version >= LEADERS_SINCE:
        _set_current_leaders(context, response)
    return response


def _count(context: RequestContext, request: ProduceRequest, response: ProduceResponse) -> int:
    """Count the results of all partitions that exist; return how many of them failed."""
    metrics = context.broker.metrics
    seconds = metrics.timer() - context.started
    failed_count = 0
    for produced, sent in zip(response.topics, request.topics, strict=True):
        topic = _known_topic(context, sent)
        if topic is None:
            continue  # Unknown names must not become metric series.
        metrics.topic(topic.name).produced(request.acks, seconds)
        for result, partition in zip(produced.partitions, sent.partitions, strict=True):
            if not 0 <= result.index < topic.partitions:
                continue
            counters = metrics.partition(topic.name, result.index)
            if result.error_code:
                counters.produces_failed += 1
                failed_count += 1
            else:
                counters.produces_succeeded += 1
                counters.produce_bytes += len(partition.records or b"")
    return failed_count


def _set_current_leaders(context: RequestContext, response: ProduceResponse) -> None:
    """Set the leaders of partitions that this broker does not lead, and their nodes (KIP-951)."""
    for produced in response.topics:
        topic = _known_topic(context, produced)
        if topic is None:
            continue
        for result in produced.partitions:
            is_known = 0 <= result.index < topic.partitions
            if is_known and result.error_code in WRONG_LEADER_ERRORS:
                _set_current_leader(context, response, topic.name, result)


def _set_current_leader(
    context: RequestContext, response: ProduceResponse, topic: str, result: ProducedPartition
) -> None:
    leader = current_leader(context, topic, b"", result.index)
    if leader is None:
        return
    result.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    known = {endpoint.node_id for endpoint in response.node_endpoints}
    response.node_endpoints += [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in leader_nodes(context, {leader[0]} - known)
    ]


def _known_topic(context: RequestContext, topic: TopicToProduce | ProducedTopic) -> Topic | None:
    topics = context.broker.topic_store
    return topics.get(topic.name) if topic.name else topics.by_id.get(topic.topic_id)


async def _create_and_append(
    context: RequestContext, request: ProduceRequest, missing: list[str], denied: _Denied
) -> ProduceResponse | None:
    for name in missing:
        with suppress(ThrottledError):  # The topic stays unknown, so that the client retries.
            await topic_admission.auto_create(context, name, request.timeout_ms)
    response = _append(context, request, denied)
    return await response if isinstance(response, Awaitable) else response


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
    topics = context.broker.topic_store.topics
    if all(topic.name in topics or not topic.name for topic in request.topics):
        return []
    if not context.broker.config.topics.auto_create:
        return []
    named = [topic.name for topic in request.topics if topic.name and topic.name not in denied]
    missing = [name for name in named if name not in topics]
    allowed = topic_admission.authorized_to_create(context, missing)
    denied.update(set(missing) - allowed)
    return [name for name in missing if name in allowed]


def _failed_topic(topic: TopicToProduce, error: KafscaleError) -> ProducedTopic:
    return ProducedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[_failed(partition.index, error) for partition in topic.partitions],
    )


def _failed(index: int, error: KafscaleError) -> ProducedPartition:
    return ProducedPartition(
        index=index, error_code=error.code, base_offset=-1, error_message=str(error)
    )


def _raise_first_error(topics: list[ProducedTopic]) -> None:
    """Raise if a partition failed: without a response, closing the connection reports it."""
    for topic in topics:
        for partition in topic.partitions:
            if partition.error_code:
                is_denied = partition.error_code == TopicAuthorizationError.code
                error_type = TopicAuthorizationError if is_denied else RefusedError
                raise error_type(f"{topic.name}: {partition.error_message}")
