"""The results of a Produce request: errors of its partitions, counters, and leaders to name.

Invariant: every partition of the request has exactly one result. A batch that is refused with a
retriable error is noted for its connection, so that those that follow stay in order.
"""

import asyncio
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.partition_lookup import (
    WRONG_LEADER_ERRORS,
    current_leader,
    leader_nodes,
)
from kafscale.broker.shared.refused_batches import PartitionKey, RefusedBatches
from kafscale.errors import (
    KafscaleError,
    OverloadedError,
    RecordsError,
    RefusedError,
    TopicAuthorizationError,
)
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionToProduce,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    ProduceResponse,
    RecordError,
    TopicToProduce,
)

LEADERS_SINCE: Final = 10

Pending = list[tuple[ProducedPartition, "asyncio.Future[None]"]]
"""The results of batches that are not durable yet."""


def check_order(
    context: RequestContext, topic: TopicToProduce, partition: PartitionToProduce
) -> None:
    """Raise if the batch follows one that was refused and has to be sent again first."""
    if context.client.refused_batches is not None:
        context.client.refused_batches.check(_key(topic, partition), partition.records)


def refuse(
    context: RequestContext,
    topic: TopicToProduce,
    partition: PartitionToProduce,
    result: ProducedPartition,
    error: KafscaleError,
) -> None:
    """Set the error of a batch that was not appended."""
    _fail(result, error)
    _note_refused(context, topic, partition, result)


def complete(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse
) -> ProduceResponse:
    """Count a response whose partitions have their results, and add the leaders it has to name."""
    failed_count = _count(context, request, response)
    if failed_count and context.version >= LEADERS_SINCE:
        _set_current_leaders(context, response)
    return response


def refused_topic(
    context: RequestContext, topic: TopicToProduce, error: KafscaleError
) -> ProducedTopic:
    """The same error for every batch of a topic, none of which was appended."""
    results = [ProducedPartition(index=partition.index) for partition in topic.partitions]
    for result, partition in zip(results, topic.partitions, strict=True):
        refuse(context, topic, partition, result, error)
    return ProducedTopic(name=topic.name, topic_id=topic.topic_id, partitions=results)


def _fail(result: ProducedPartition, error: KafscaleError) -> None:
    result.error_code = error.code
    result.error_message = str(error)
    result.base_offset = -1
    if isinstance(error, RecordsError) and error.record_errors:
        result.record_errors = [RecordError(*each) for each in error.record_errors]


def set_errors(pending: Pending) -> None:
    """Set the errors of batches that are not durable yet, or never will be."""
    for result, future in pending:
        error: BaseException | None
        if future.done():
            error = future.exception()
        else:
            error = OverloadedError("the records are not durable yet")
        if error is not None:
            assert isinstance(error, KafscaleError)
            _fail(result, error)


def raise_first_error(topics: list[ProducedTopic]) -> None:
    """Raise if a partition failed: without a response, closing the connection reports it."""
    for topic in topics:
        for partition in topic.partitions:
            if partition.error_code:
                is_denied = partition.error_code == TopicAuthorizationError.code
                error_type = TopicAuthorizationError if is_denied else RefusedError
                raise error_type(f"{topic.name}: {partition.error_message}")


def _note_refused(
    context: RequestContext,
    topic: TopicToProduce,
    partition: PartitionToProduce,
    result: ProducedPartition,
) -> None:
    """Note a batch that the producer is going to send again, if its error is retriable."""
    if ErrorCode.of(result.error_code).retriable:
        client = context.client
        client.refused_batches = client.refused_batches or RefusedBatches()
        client.refused_batches.note(_key(topic, partition), partition.records)


def _key(topic: TopicToProduce, partition: PartitionToProduce) -> PartitionKey:
    return topic.name or topic.topic_id, partition.index


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
                if result.error_code != ErrorCode.REQUEST_TIMED_OUT:  # It may become durable.
                    _note_refused(context, sent, partition, result)
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
