"""OffsetDelete: v0.

Behaviour:
* Offsets are deleted, whether there are any or not, and the response is sent once that is stored.
* A topic that members of the group subscribe to keeps its offsets: GROUP_SUBSCRIBED_TO_TOPIC. A
  partition that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
* A missing group is GROUP_ID_NOT_FOUND, an empty group id INVALID_GROUP_ID, a group whose members
  are not consumers NON_EMPTY_GROUP: top-level errors, without partitions.
* A topic without partitions is ignored.
* Requires DELETE on the group, else GROUP_AUTHORIZATION_FAILED; and READ on each topic, else
  TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

Version notes: there is one version.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import check_group_id
from kafscale.errors import TopicAuthorizationError, UnknownTopicError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.offset_delete import (
    DeletedPartition,
    DeletedTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TopicToDelete,
)
from kafscale.text.topic_partition import TopicPartition


async def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    topics = [topic for topic in request.topics if topic.partitions]
    codes: dict[TopicPartition, int] = {}
    topic_partitions: list[TopicPartition] = []
    for topic in topics:
        if context.is_authorized(Operation.READ, ResourceType.TOPIC, topic.name):
            topic_partitions += _existing(context, topic)
        else:
            denied = TopicAuthorizationError.code
            codes.update({(topic.name, each.index): denied for each in topic.partitions})
    deleted = await context.broker.groups.delete_offsets(request.group_id, topic_partitions)
    codes.update({key: error.code if error else 0 for key, error in deleted.items()})
    _audit(context, request.group_id, codes)
    return OffsetDeleteResponse(topics=[_deleted(topic, codes) for topic in topics])


def _existing(context: RequestContext, requested: TopicToDelete) -> list[TopicPartition]:
    """The requested partitions that exist."""
    topic = context.broker.topic_store.find(requested.name)
    indexes = range(topic.partitions if topic else 0)
    return [(requested.name, each.index) for each in requested.partitions if each.index in indexes]


def _audit(context: RequestContext, group_id: str, codes: dict[TopicPartition, int]) -> None:
    for topic in dict.fromkeys(topic for (topic, _), code in codes.items() if not code):
        context.broker.audit.changed(context, "offsets deleted", group=group_id, topic=topic)


def _deleted(requested: TopicToDelete, codes: dict[TopicPartition, int]) -> DeletedTopic:
    return DeletedTopic(
        name=requested.name,
        partitions=[
            DeletedPartition(
                each.index, codes.get((requested.name, each.index), UnknownTopicError.code)
            )
            for each in requested.partitions
        ],
    )
