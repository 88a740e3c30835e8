"""CreateTopics: v0-7.

Behaviour:
* Topics are created concurrently; each succeeds or fails on its own. A name that appears twice is
  refused, and answered once; a request with too many partitions is refused as a whole.
* When the response is sent, the partitions have leaders, or soon will.
* The object store replicates records: any replication factor is accepted and returned as 1.
* Lists of brokers for the partitions are kept as their replicas: the first of them that is live and
  not draining is to own the partition (`metadata.cluster.replicas`).
* Requires CREATE on each topic or on the cluster, else TOPIC_AUTHORIZATION_FAILED, whether it
  exists or not; and DESCRIBE_CONFIGS on the topic for its configs in the response.
* Partitions are charged to the client's quota; if it is exceeded, THROTTLING_QUOTA_EXCEEDED (v6+),
  or a throttle time in the response (KIP-599).
* `validate_only` performs the same checks, except for the quota, and creates nothing, so that the
  response has no topic id.

Version notes:
* v4 lets clients request -1 partitions, the broker's default. As in Kafka it is granted in all
  versions: KafkaJS requests it in v3, and by default.
* v5+: partitions, replicas and configs of the new topic in the response; v7+: its id.
"""

import asyncio
from collections import Counter
from typing import Final

from kafscale.broker.configs import topic_configs
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.replica_assignment import Replicas, check_new_replicas
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
    topic_admission.check_new_partitions(_requested_count(context, topic) for topic in topics)
    created = await asyncio.gather(
        *(_create(context, request, topic) for topic in topics if counts[topic.name] == 1)
    )
    duplicate = InvalidRequestError("Duplicate topic name.")
    return CreateTopicsResponse(
        topics=[
            *created,
            *(_failed(name, duplicate) for name in counts if counts[name] > 1 and name in allowed),
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
        # The name is checked first, as in Kafka: to many clients an existing topic is as good as a
        # new one, whatever else they request.
        broker.topic_store.check_new(topic.name, partitions=1)
        replicas = _check_assignments(broker, topic)
        partition_count = len(replicas) or _partition_count(context, topic)
        configs = config_validation.validate(
            {config.name: config.value for config in topic.configs}
        )
        topic_id = UUID_ZERO
        if not request.validate_only:
            broker.quotas.charge_mutation(context, partition_count)
            timeout_ms = max(request.timeout_ms, topic_admission.TIMEOUT_MS_MIN)
            created = await broker.topics.create(
                topic.name, partition_count, configs, timeout_ms, replicas
            )
            topic_id = created.id
            broker.audit.changed(
                context, "topic created", topic=topic.name, partitions=partition_count
            )
    except KafscaleError as error:
        return _failed(topic.name, error)
    result = CreatedTopic(name=topic.name, topic_id=topic_id, error_message=None)
    if context.version >= DESCRIBED_SINCE:
        factor = len(replicas[0]) if replicas else REPLICATION_FACTOR
        _describe(context, result, partition_count, factor, configs)
    return result


def _check_assignments(broker: Services, topic: TopicToCreate) -> dict[int, Replicas]:
    """The requested replicas by partition, or none; raises if they are invalid."""
    if not topic.assignments:
        return {}
    if topic.replication_factor != DEFAULT:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.partition_count != DEFAULT:
        raise InvalidRequestError(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    replicas = check_new_replicas(
        broker, [(each.index, each.broker_ids) for each in topic.assignments]
    )
    if replicas.keys() != set(range(len(replicas))):
        raise InvalidAssignmentError("partitions should be a consecutive 0-based integer sequence")
    return replicas


def _partition_count(context: RequestContext, topic: TopicToCreate) -> int:
    """The number of partitions; raises if partitions or replicas are invalid."""
    if topic.replication_factor < 1 and topic.replication_factor != DEFAULT:
        raise InvalidReplicationFactorError(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    count = _requested_count(context, topic)
    if count < 1:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value."
        )
    return count


def _requested_count(context: RequestContext, topic: TopicToCreate) -> int:
    """The requested number of partitions, which is not checked yet."""
    if topic.assignments:
        return len(topic.assignments)
    if topic.partition_count == DEFAULT:
        return context.broker.config.topics.auto_create_partitions
    return topic.partition_count


def _describe(
    context: RequestContext,
    result: CreatedTopic,
    partition_count: int,
    replication_factor: int,
    configs: dict[str, str],
) -> None:
    """Add partitions and configs to the result, if the client may describe them."""
    operation = Operation.DESCRIBE_CONFIGS
    if not context.is_authorized(operation, ResourceType.TOPIC, result.name, quiet=True):
        result.config_error_code = TopicAuthorizationError.code
        return
    result.partition_count = partition_count
    result.replication_factor = replication_factor
    result.configs = [
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
