"""DescribeProducers: v0.

Behaviour:
* The idempotent producers that a partition remembers. None of them has a transaction.
* Each partition succeeds or fails on its own.
* Requires READ on each topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

Version notes: there is one version.
"""

from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.services import Services
from kafscale.broker.shared.partition_lookup import find_by_name
from kafscale.errors import KafscaleError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.topics import names
from kafscale.protocol.messages.describe_producers import (
    ActiveProducer,
    DescribedPartition,
    DescribedTopic,
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicToDescribe,
)

NO_COORDINATOR: Final = -1


def handle(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[_describe_topic(context, topic) for topic in request.topics]
    )


def error_response(
    _context: RequestContext, request: DescribeProducersRequest, error: KafscaleError
) -> DescribeProducersResponse:
    """The same error for every partition."""
    return DescribeProducersResponse(
        topics=[_failed_topic(topic, error) for topic in request.topics]
    )


def _failed_topic(topic: TopicToDescribe, error: KafscaleError) -> DescribedTopic:
    return DescribedTopic(
        name=topic.name, partitions=[_failed(index, error) for index in topic.partitions]
    )


def _describe_topic(context: RequestContext, topic: TopicToDescribe) -> DescribedTopic:
    if not context.is_authorized(Operation.READ, ResourceType.TOPIC, topic.name):
        return _failed_topic(topic, authorization_error(ResourceType.TOPIC, topic.name))
    return DescribedTopic(
        name=topic.name,
        partitions=[_describe(context.broker, topic.name, index) for index in topic.partitions],
    )


def _describe(broker: Services, topic: str, index: int) -> DescribedPartition:
    try:
        names.check(topic)
        log = find_by_name(broker, topic, index)
    except KafscaleError as error:
        return _failed(index, error)
    return DescribedPartition(
        index=index,
        active_producers=[
            ActiveProducer(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.last_sequence,
                last_timestamp_ms=producer.last_timestamp_ms,
                coordinator_epoch=NO_COORDINATOR,
            )
            for producer in log.producers.describe()
        ],
    )


def _failed(index: int, error: KafscaleError) -> DescribedPartition:
    return DescribedPartition(index=index, error_code=error.code, error_message=str(error))
