"""AlterPartitionReassignments: v0-1.

Behaviour:
* A list of replicas is an order of preference, and kept as a whole: the first of them that is live
  and not draining is to own the partition (`metadata.cluster.replicas`). The controller requests
  the transfers after the response; ListPartitionReassignments shows those that are not done.
* Null cancels a reassignment in progress: the partition stays where it is, and a transfer that has
  begun is stopped if possible. Otherwise NO_REASSIGNMENT_IN_PROGRESS.
* An empty list, a broker that is not registered, or one twice: INVALID_REPLICA_ASSIGNMENT. The
  partitions of a topic that pass are stored together.
* Requires ALTER on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v1: another number of replicas may be disallowed: INVALID_REPLICATION_FACTOR.
"""

import asyncio

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.replica_assignment import Replicas, check_replicas
from kafscale.errors import (
    InvalidReplicationFactorError,
    KafscaleError,
    NoReassignmentInProgressError,
    UnknownTopicError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.replicas import partition_replicas
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionToReassign,
    ReassignedPartition,
    ReassignedTopic,
    TopicToReassign,
)


async def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    topic_admission.check_admin_allowed(context.broker)
    allow_change = request.allow_replication_factor_change
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=allow_change,
        error_message=None,
        topics=await asyncio.gather(
            *(
                _reassign(context, topic, allow_count_change=allow_change)
                for topic in request.topics
            )
        ),
    )


def error_response(
    _context: RequestContext, request: AlterPartitionReassignmentsRequest, error: KafscaleError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=error.code,
        error_message=str(error),
        topics=[_failed(topic, error) for topic in request.topics],
    )


async def _reassign(
    context: RequestContext, requested: TopicToReassign, *, allow_count_change: bool
) -> ReassignedTopic:
    broker = context.broker
    topic = broker.topic_store.get(requested.name)
    if topic is None:
        error = UnknownTopicError(f"Unable to find a topic named {requested.name}.")
        return _failed(requested, error)
    results: list[ReassignedPartition] = []
    replicas: dict[int, Replicas] = {}
    for partition in requested.partitions:
        try:
            replicas[partition.index] = _checked(
                broker, topic, partition, allow_count_change=allow_count_change
            )
        except KafscaleError as error:
            results.append(_result(partition.index, error))
        else:
            results.append(_result(partition.index))
    if replicas:
        try:
            await broker.topic_store.request_replicas(topic.name, topic.id, replicas)
        except KafscaleError as error:
            return _failed(requested, error)
        broker.audit.changed(
            context, "partitions reassigned", topic=topic.name, replicas=sorted(replicas.items())
        )
    return ReassignedTopic(name=requested.name, partitions=results)


def _checked(
    broker: Services, topic: Topic, partition: PartitionToReassign, *, allow_count_change: bool
) -> Replicas:
    """The replicas to store for a partition; raises if the request cannot be fulfilled."""
    if not 0 <= partition.index < topic.partitions:
        raise UnknownTopicError(f"Unable to find partition {topic.name}:{partition.index}.")
    current = partition_replicas(broker.cluster, topic, partition.index)
    if partition.replicas is None:
        if not current.is_reassigning:
            raise NoReassignmentInProgressError
        return (current.leader_id,)
    replicas = check_replicas(broker, partition.replicas)
    if not allow_count_change and len(replicas) != len(current.target):
        raise InvalidReplicationFactorError(
            f"The replication factor is changed from {len(current.target)} to {len(replicas)}"
        )
    return replicas


def _failed(topic: TopicToReassign, error: KafscaleError) -> ReassignedTopic:
    return ReassignedTopic(
        name=topic.name,
        partitions=[_result(partition.index, error) for partition in topic.partitions],
    )


def _result(index: int, error: KafscaleError | None = None) -> ReassignedPartition:
    if error is None:
        return ReassignedPartition(index=index, error_message=None)
    return ReassignedPartition(index=index, error_code=error.code, error_message=str(error) or None)
