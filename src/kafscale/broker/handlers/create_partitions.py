"""CreatePartitions: v0-3.

Behaviour:
* A topic can get more partitions, never fewer; the new ones are empty and have leaders, or soon
  will, when the response is sent. As in Kafka, records of one key may then be in two partitions.
* Topics are changed concurrently; each succeeds or fails on its own. A name that appears twice is
  refused, and answered once; a request with too many new partitions is refused as a whole.
* Requires ALTER on each topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
* A list of brokers for each new partition is kept as its replicas: the first of them that is live
  and not draining is to own the partition (`metadata.cluster.replicas`).
* New partitions are charged to the client's quota; if it is exceeded, THROTTLING_QUOTA_EXCEEDED
  (v3+), or a throttle time in the response (KIP-599).
* `validate_only` performs the same checks, except for the quota, and changes nothing.

Version notes: all versions behave alike.
"""

import asyncio
from collections import Counter

from kafscale.broker.configs.resources import check_not_internal
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.replica_assignment import Replicas, check_new_replicas
from kafscale.errors import (
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidRequestError,
    KafscaleError,
    UnknownTopicError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.replicas import partition_replicas
from kafscale.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    GrownTopic,
    TopicToGrow,
)


async def handle(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    broker = context.broker
    topic_admission.check_admin_allowed(broker)
    denied = {
        topic.name
        for topic in request.topics
        if not context.is_authorized(Operation.ALTER, ResourceType.TOPIC, topic.name)
    }
    topic_admission.check_new_partitions(
        _added(broker, topic) for topic in request.topics if topic.name not in denied
    )
    counts = Counter(topic.name for topic in request.topics)
    grown = await asyncio.gather(
        *(
            _grow(context, topic, validate_only=request.validate_only)
            for topic in request.topics
            if counts[topic.name] == 1 and topic.name not in denied
        )
    )
    duplicate = InvalidRequestError("Duplicate topic name.")
    return CreatePartitionsResponse(
        topics=[
            *grown,
            *(_failed(name, authorization_error(ResourceType.TOPIC, name)) for name in denied),
            *(
                _failed(name, duplicate)
                for name in counts
                if counts[name] > 1 and name not in denied
            ),
        ]
    )


def error_response(
    _context: RequestContext, request: CreatePartitionsRequest, error: KafscaleError
) -> CreatePartitionsResponse:
    """The same error for every topic."""
    return CreatePartitionsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


async def _grow(context: RequestContext, topic: TopicToGrow, *, validate_only: bool) -> GrownTopic:
    broker = context.broker
    try:
        current_count = _partition_count(broker, topic.name)
        check_not_internal(broker, topic.name)
        replicas = _check(broker, topic, current_count)
        if not validate_only:
            broker.quotas.charge_mutation(context, topic.partition_count - current_count)
            await broker.topics.grow(topic.name, topic.partition_count, replicas)
            broker.audit.changed(
                context, "partitions added", topic=topic.name, partitions=topic.partition_count
            )
    except KafscaleError as error:
        return _failed(topic.name, error)
    return GrownTopic(name=topic.name)


def _partition_count(broker: Services, name: str) -> int:
    topic = broker.topic_store.find(name)
    if topic is None:
        raise UnknownTopicError
    return topic.partitions


def _check(broker: Services, topic: TopicToGrow, current_count: int) -> list[Replicas]:
    """The requested replicas of the new partitions, or none; raises if the request is invalid."""
    requested_count = topic.partition_count
    if requested_count == current_count:
        raise InvalidPartitionsError(f"Topic already has {current_count} partition(s).")
    if requested_count < current_count:
        raise InvalidPartitionsError(
            f"The topic {topic.name} currently has {current_count} partition(s);"
            f" {requested_count} would not be an increase."
        )
    if topic.assignments is None:
        return []
    added_count = requested_count - current_count
    if len(topic.assignments) != added_count:
        raise InvalidAssignmentError(
            f"Attempted to add {added_count} additional partition(s),"
            f" but only {len(topic.assignments)} assignment(s) were specified."
        )
    existing = broker.topic_store.topics[topic.name]
    lists = [
        (current_count + number, each.broker_ids) for number, each in enumerate(topic.assignments)
    ]
    count = len(partition_replicas(broker.cluster, existing, 0).target) or None
    return list(check_new_replicas(broker, lists, count).values())


def _added(broker: Services, topic: TopicToGrow) -> int:
    """How many partitions a topic would get; the number is not checked yet."""
    current = broker.topic_store.find(topic.name)
    return topic.partition_count - current.partitions if current else 0


def _failed(name: str, error: KafscaleError) -> GrownTopic:
    return GrownTopic(name=name, error_code=error.code, error_message=str(error))
