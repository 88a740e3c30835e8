"""DescribeTopicPartitions: v0.

Behaviour:
* The topics asked for, or all of them, by name; each partition has one replica, its leader.
* A page holds as many partitions as the client wants and no more than `PARTITIONS_COUNT_MAX`; where
  it ends, a cursor says with which partition the next one begins. A topic that is gone by then is
  answered as unknown if it was asked for, and left out if it was not.
* Topics are never created here.
* Needs DESCRIBE on each topic that is named, TOPIC_AUTHORIZATION_FAILED otherwise, whether it
  exists or not. Of all topics, those are told that the client may see.

Version notes: there is one version.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security import authorization
from kafscale.errors import InvalidRequestError, KafscaleError, TopicAuthorizationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.metadata.schema.model import Topic
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
    if cursor.partition_index < 0:
        raise InvalidRequestError(f"The cursor's partition is {cursor.partition_index}")
    left = max(min(request.partition_limit, PARTITIONS_COUNT_MAX), 1)
    topics: list[DescribedTopic] = []
    for name in _names(context, request, cursor):
        if not left:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, 0))
        topic = context.broker.catalog.get(name)
        if request.topics and not context.is_authorized(
            Operation.DESCRIBE, ResourceType.TOPIC, name
        ):
            topics.append(DescribedTopic(error_code=TopicAuthorizationError.code, name=name))
            continue
        if topic is None:
            topics.append(_unknown(name))
            continue
        first = cursor.partition_index if name == cursor.topic_name else 0
        numbers = range(first, topic.partitions)
        topics.append(_described(context, topic, numbers[:left]))
        if len(numbers) > left:
            following = Cursor(name, numbers[left])
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=following)
        left -= len(numbers)
    return DescribeTopicPartitionsResponse(topics=topics)


def error_response(
    _context: RequestContext, request: DescribeTopicPartitionsRequest, error: KafscaleError
) -> DescribeTopicPartitionsResponse | None:
    """The same error for every topic; where none is named, there is nothing to say it with."""
    if not request.topics:
        return None
    return DescribeTopicPartitionsResponse(
        topics=[DescribedTopic(error_code=error.code, name=topic.name) for topic in request.topics]
    )


def _names(
    context: RequestContext, request: DescribeTopicPartitionsRequest, cursor: Cursor
) -> list[str]:
    """The topics of this page and of those after it."""
    asked = {topic.name for topic in request.topics} or _seen(context)
    return sorted(name for name in asked if name >= cursor.topic_name)


def _seen(context: RequestContext) -> set[str]:
    """All topics that the client may see."""
    return {
        name
        for name in context.broker.catalog.topics
        if context.can_describe(ResourceType.TOPIC, name)
    }


def _described(context: RequestContext, topic: Topic, numbers: Iterable[int]) -> DescribedTopic:
    return DescribedTopic(
        name=topic.name,
        topic_id=topic.id,
        partitions=[_partition(context, topic.name, number) for number in numbers],
        authorized_operations=authorization.authorized_operations(
            context, ResourceType.TOPIC, topic.name
        ),
    )


def _partition(context: RequestContext, topic: str, number: int) -> DescribedPartition:
    leader_id, leader_epoch = context.broker.cluster.leader(topic, number)
    is_led = leader_id != NO_BROKER
    return DescribedPartition(
        error_code=ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
        index=number,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replicas=[leader_id] if is_led else [],
        in_sync_replicas=[leader_id] if is_led else [],
        eligible_leader_replicas=[],
        last_known_eligible_leader_replicas=[],
    )


def _unknown(name: str) -> DescribedTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not names.is_legal(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribedTopic(error_code=code, name=name)
