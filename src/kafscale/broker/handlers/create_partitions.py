"""CreatePartitions: v0-3.

Behaviour:
* A topic can get more partitions, never fewer; the new ones are empty and can be written to when
  the answer comes. Records of one key may lie in two partitions then, as in Kafka.
* Topics grow side by side; each succeeds or fails on its own. A name that stands in the request
  twice is refused, and answered once; all are, if they want too many new partitions together.
* An assignment of replicas, which could not be kept, is refused.
* `validate_only` checks all of this and changes nothing.

Version notes: all versions are served alike.
"""

import asyncio
from collections import Counter

from kafscale.broker import admin_rules
from kafscale.broker.config_resources import find_topic
from kafscale.broker.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import (
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidRequestError,
    KafscaleError,
)
from kafscale.observability.logging import get_logger
from kafscale.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    GrownTopic,
    TopicToGrow,
)

log = get_logger(__name__)


async def handle(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    broker = context.broker
    admin_rules.check_allowed(broker)
    admin_rules.check_new_partitions(_added(broker, topic) for topic in request.topics)
    counts = Counter(topic.name for topic in request.topics)
    grown = await asyncio.gather(
        *(
            _grow(broker, topic, validate_only=request.validate_only)
            for topic in request.topics
            if counts[topic.name] == 1
        )
    )
    twice = InvalidRequestError("Duplicate topic name.")
    duplicates = [_failed(name, twice) for name, count in counts.items() if count > 1]
    return CreatePartitionsResponse(topics=[*grown, *duplicates])


def refuse(
    _context: RequestContext, request: CreatePartitionsRequest, error: KafscaleError
) -> CreatePartitionsResponse:
    """The same error for every topic."""
    return CreatePartitionsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


async def _grow(broker: Services, topic: TopicToGrow, *, validate_only: bool) -> GrownTopic:
    try:
        _check(topic, find_topic(broker, topic.name).partitions)
        if not validate_only:
            await broker.topics.grow(topic.name, topic.partition_count)
            log.info("topic grown", topic=topic.name, partitions=topic.partition_count)
    except KafscaleError as error:
        return _failed(topic.name, error)
    return GrownTopic(name=topic.name)


def _check(topic: TopicToGrow, current_count: int) -> None:
    wanted_count = topic.partition_count
    if wanted_count == current_count:
        raise InvalidPartitionsError(f"Topic already has {current_count} partition(s).")
    if wanted_count < current_count:
        raise InvalidPartitionsError(
            f"The topic {topic.name} currently has {current_count} partition(s);"
            f" {wanted_count} would not be an increase."
        )
    if topic.assignments:
        raise InvalidAssignmentError(
            "Replicas cannot be assigned: the object store replicates records, brokers do not."
        )


def _added(broker: Services, topic: TopicToGrow) -> int:
    """How many partitions a topic would get, which may be nonsense."""
    current = broker.catalog.get(topic.name)
    return topic.partition_count - current.partitions if current else 0


def _failed(name: str, error: KafscaleError) -> GrownTopic:
    return GrownTopic(name=name, error_code=error.code, error_message=str(error))
