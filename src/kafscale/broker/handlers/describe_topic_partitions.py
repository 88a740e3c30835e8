"""DescribeTopicPartitions: v0.

Behaviour:
* The requested topics, or all of them, by name; a partition has one replica, its leader, or those
  that were requested (`metadata.cluster.replicas`).
* A page has at most as many partitions as the client requests, and at most `PARTITIONS_COUNT_MAX`;
  a cursor names the first partition of the next page. A topic that was deleted in between is
  unknown if it was requested, and left out otherwise. A cursor whose topic is not requested, or
  with a negative partition: INVALID_REQUEST.
* Topics are never auto-created here.
* Requires DESCRIBE on each requested topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or
  not. A request for all topics returns those that the client may DESCRIBE.

Version notes: there is one version.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security import authorization
from kafscale.errors import InvalidRequestError, KafscaleError, TopicAuthorizationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.replicas import partition_replicas
from kafscale.metadata.schema.model import NO_BROKER, Topic
from kafscale.metadata.topics import names
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribedPartition,
    DescribedTopic,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

PARTITIONS_COUNT_MAX: Final = 2000
"""Kafka's max.request.partition.size.limit."""


def handle(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    cursor = request.cursor or Cursor()
    if (
        request.cursor is not None
        and request.topics
        and cursor.topic_name not in {topic.name for topic in request.topics}
    ):
        raise InvalidRequestError(f"The cursor's topic is not requested: {cursor.topic_name!r}")
    if cursor.partition_index < 0:
        raise InvalidRequestError(f"The cursor's partition is {cursor.partition_index}")
    remaining = max(min(request.partition_limit, PARTITIONS_COUNT_MAX), 1)
    topics: list[DescribedTopic] = []
    for name in _names(context, request, cursor):
        if not remaining:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, 0))
        topic = context.broker.topic_store.find(name)
        if request.topics and not context.is_authorized(
            Operation.DESCRIBE, ResourceType.TOPIC, name
        ):
            topics.append(DescribedTopic(error_code=TopicAuthorizationError.code, name=name))
            continue
        if topic is None:
            topics.append(_unknown(context, name))
            continue
        first = cursor.partition_index if name == cursor.topic_name else 0
        numbers = range(first, topic.partitions)
        topics.append(_described(context, topic, numbers[:remaining]))
        if len(numbers) > remaining:
            following = Cursor(name, numbers[remaining])
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=following)
        remaining -= len(numbers)
    return DescribeTopicPartitionsResponse(topics=topics)


def error_response(
    _context: RequestContext, request: DescribeTopicPartitionsRequest, error: KafscaleError
) -> DescribeTopicPartitionsResponse | None:
    """The same error for every topic; None if no topic is named, as there is no other field."""
    if not request.topics:
        return None
    return DescribeTopicPartitionsResponse(
        topics=[DescribedTopic(error_code=error.code, name=topic.name) for topic in request.topics]
    )


def _names(
    context: RequestContext, request: DescribeTopicPartitionsRequest, cursor: Cursor
) -> list[str]:
    """The topics of this page and of those after it."""
    requested = {topic.name for topic in request.topics} or _visible(context)
    return sorted(name for name in requested if name >= cursor.topic_name)


def _visible(context: RequestContext) -> set[str]:
    """All topics that the client may describe."""
    return {
        name
        for name in context.broker.topic_store.visible
        if context.can_describe(ResourceType.TOPIC, name)
    }


def _described(context: RequestContext, topic: Topic, numbers: Iterable[int]) -> DescribedTopic:
    return DescribedTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=context.broker.topic_store.is_internal(topic.name),
        partitions=[_partition(context, topic, number) for number in numbers],
        authorized_operations=authorization.authorized_operations(
            context, ResourceType.TOPIC, topic.name
        ),
    )


def _partition(context: RequestContext, topic: Topic, number: int) -> DescribedPartition:
    current = partition_replicas(context.broker.cluster, topic, number)
    has_leader = current.leader_id != NO_BROKER
    return DescribedPartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        index=number,
        leader_id=current.leader_id,
        leader_epoch=current.leader_epoch,
        replicas=list(current.replicas),
        in_sync_replicas=list(current.in_sync),
        eligible_leader_replicas=[],
        last_known_eligible_leader_replicas=[],
        offline_replicas=list(current.offline),
    )


def _unknown(context: RequestContext, name: str) -> DescribedTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not names.is_legal(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    operations = authorization.authorized_operations(context, ResourceType.TOPIC, name)
    return DescribedTopic(error_code=code, name=name, authorized_operations=operations)
