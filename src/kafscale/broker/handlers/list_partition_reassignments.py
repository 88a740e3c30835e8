"""ListPartitionReassignments: v0.

Behaviour:
* The partitions that a broker owns which is not in their list of replicas, while a broker of the
  list is there to take them over. The replicas are the requested ones, which are being added, and
  the owner, which is being removed.
* All partitions, or the requested ones. Unknown topics and partitions are left out.
* Requires DESCRIBE on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes: there is one version.
"""

from collections.abc import Iterable

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.replicas import partition_replicas
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionReassignment,
    TopicReassignment,
)


def handle(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    broker = context.broker
    topics = [
        TopicReassignment(name=topic.name, partitions=partitions)
        for topic, indexes in _requested(broker, request)
        if (partitions := _in_progress(broker, topic, indexes))
    ]
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _requested(
    broker: Services, request: ListPartitionReassignmentsRequest
) -> Iterable[tuple[Topic, Iterable[int]]]:
    topics = broker.topic_store.topics
    if request.topics is None:
        return [(topic, topic.replicas) for topic in topics.values() if topic.replicas]
    return [
        (topics[requested.name], requested.partitions)
        for requested in request.topics
        if requested.name in topics
    ]


def _in_progress(
    broker: Services, topic: Topic, indexes: Iterable[int]
) -> list[PartitionReassignment]:
    reassignments = []
    for index in sorted(topic.replicas.keys() & set(indexes)):
        current = partition_replicas(broker.cluster, topic, index)
        if current.is_reassigning:
            reassignments.append(
                PartitionReassignment(
                    index=index,
                    replicas=list(current.replicas),
                    adding_replicas=list(current.adding),
                    removing_replicas=list(current.removing),
                )
            )
    return reassignments
