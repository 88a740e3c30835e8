"""CreateTopics: v0-7.

Behaviour:
* Topics are created side by side; each succeeds or fails on its own. A name that stands in the
  request twice is refused, and answered once; all are, if they want too many partitions together.
* When a topic is answered, its partitions can be written to.
* Records are replicated by the store: any replication factor is accepted and answered as 1, and an
  assignment of replicas, which could not be kept, is refused.
* Needs CREATE on each topic or on the cluster, TOPIC_AUTHORIZATION_FAILED otherwise, whether it
  exists or not; and DESCRIBE_CONFIGS on the topic for what is told of it in the answer.
* Partitions count against the client's quota; if that is used up, THROTTLING_QUOTA_EXCEEDED (v6+),
  or a wait after the answer (KIP-599).
* `validate_only` checks all of this, but for the quota, and creates nothing, so its answers have no
  topic id.

Version notes:
* v4 lets clients ask for -1 partitions, the broker's number. As in Kafka it is granted in all
  versions: KafkaJS asks for it in v3, and by default.
* v5+: partitions, replicas and configs of the new topic in the answer; v7+: its id.
"""

import asyncio
from collections import Counter
from typing import Final

from kafscale.broker.configs import topic_configs
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.shared import topic_admission
from kafscale.errors import (
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    KafscaleError,
    TopicAuthorizationError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.topics import config_validation
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.messages.create_topics import (
    CreatedTopic,
    CreatedTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    TopicToCreate,
)

DEFAULT: Final = -1
REPLICATION_FACTOR: Final = 1
DESCRIBED_SINCE: Final = 5


async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    topic_admission.check_admin_allowed(context.broker)
    counts = Counter(topic.name for topic in request.topics)
    allowed = topic_admission.authorized_to_create(context, counts)
    topics = [topic for topic in request.topics if topic.name in allowed]
    topic_admission.check_new_partitions(_wanted(context, topic) for topic in topics)
    created = await asyncio.gather(
        *(_create(context, request, topic) for topic in topics if counts[topic.name] == 1)
    )
    twice = InvalidRequestError("Duplicate topic name.")
    return CreateTopicsResponse(
        topics=[
            *created,
            *(_failed(name, twice) for name in counts if counts[name] > 1 and name in allowed),
            *(_denied(name) for name in counts if name not in allowed),
        ]
    )


def error_response(
    _context: RequestContext, request: CreateTopicsRequest, error: KafscaleError
) -> CreateTopicsResponse:
    """The same error for every topic."""
    return CreateTopicsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


async def _create(
    context: RequestContext, request: CreateTopicsRequest, topic: TopicToCreate
) -> CreatedTopic:
    broker = context.broker
    try:
        # The name first, as in Kafka: to many clients a topic that exists is as good as one that
        # they have created, whatever else they ask for.
        broker.catalog.check_new(topic.name, partitions=1)
        partition_count = _partition_count(context, topic)
        configs = config_validation.validate(
            {config.name: config.value for config in topic.configs}, broker.topic_defaults
        )
        topic_id = UUID_ZERO
        if not request.validate_only:
            broker.quotas.charge_mutation(context, partition_count)
            timeout_ms = max(request.timeout_ms, topic_admission.TIMEOUT_MS_MIN)
            made = await broker.topics.create(topic.name, partition_count, configs, timeout_ms)
            topic_id = made.id
            broker.audit.changed(
                context, "topic created", topic=topic.name, partitions=partition_count
            )
    except KafscaleError as error:
        return _failed(topic.name, error)
    answer = CreatedTopic(name=topic.name, topic_id=topic_id, error_message=None)
    if context.version >= DESCRIBED_SINCE:
        _describe(context, answer, partition_count, configs)
    return answer


def _partition_count(context: RequestContext, topic: TopicToCreate) -> int:
    """How many partitions a topic gets; raises what is wrong about its partitions and replicas."""
    if topic.assignments:
        raise InvalidAssignmentError(
            "Replicas cannot be assigned: the object store replicates records, brokers do not."
        )
    if topic.replication_factor < 1 and topic.replication_factor != DEFAULT:
        raise InvalidReplicationFactorError(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    count = _wanted(context, topic)
    if count < 1:
        raise InvalidPartitionsError(
            "Number of partitions must be larger than 0, or -1 to use the default value."
        )
    return count


def _wanted(context: RequestContext, topic: TopicToCreate) -> int:
    """How many partitions are asked for, which may be nonsense."""
    if topic.partition_count == DEFAULT:
        return context.broker.config.topics.auto_create_partitions
    return topic.partition_count


def _describe(
    context: RequestContext, answer: CreatedTopic, partition_count: int, configs: dict[str, str]
) -> None:
    """Tell what has become of a topic, if the client may know that."""
    may_know = Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, answer.name
    if not context.is_authorized(*may_know, quiet=True):
        answer.config_error_code = TopicAuthorizationError.code
        return
    answer.partition_count = partition_count
    answer.replication_factor = REPLICATION_FACTOR
    answer.configs = [
        CreatedTopicConfig(
            name=config.name,
            value=config.value,
            is_read_only=config.read_only,
            source=config.source,
            is_sensitive=config.is_sensitive,
        )
        for config in topic_configs.describe(configs, context.broker.topic_defaults)
    ]


def _denied(name: str) -> CreatedTopic:
    return _failed(name, authorization_error(ResourceType.TOPIC, name))


def _failed(name: str, error: KafscaleError) -> CreatedTopic:
    return CreatedTopic(name=name, error_code=error.code, error_message=str(error))
