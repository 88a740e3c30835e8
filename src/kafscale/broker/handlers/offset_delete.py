"""OffsetDelete: v0.

Behaviour:
* Offsets are forgotten, whether there were any or not, and answered once that is in the store.
* A topic that members of the group read keeps its offsets: GROUP_SUBSCRIBED_TO_TOPIC. A partition
  that does not exist is UNKNOWN_TOPIC_OR_PARTITION.
* A group that does not exist is GROUP_ID_NOT_FOUND, one without a name INVALID_GROUP_ID, one with
  members that are no consumers NON_EMPTY_GROUP: told for the whole request, without its partitions.
* A topic of which no partitions are named is passed over.
* Needs DELETE on the group, GROUP_AUTHORIZATION_FAILED otherwise; and READ on each topic, or else
  TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

Version notes: there is one version.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.groups import check_group_id
from kafscale.errors import TopicAuthorizationError, UnknownTopicError
from kafscale.groups.model import TopicPartition
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.offset_delete import (
    DeletedPartition,
    DeletedTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    TopicToDelete,
)


async def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    topics = [topic for topic in request.topics if topic.partitions]
    codes: dict[TopicPartition, int] = {}
    places: list[TopicPartition] = []
    for topic in topics:
        if context.is_authorized(Operation.READ, ResourceType.TOPIC, topic.name):
            places += _known(context, topic)
        else:
            denied = TopicAuthorizationError.code
            codes.update({(topic.name, each.index): denied for each in topic.partitions})
    deleted = await context.broker.groups.delete_offsets(request.group_id, places)
    codes.update({place: error.code if error else 0 for place, error in deleted.items()})
    _tell(context, request.group_id, codes)
    return OffsetDeleteResponse(topics=[_deleted(topic, codes) for topic in topics])


def _known(context: RequestContext, asked: TopicToDelete) -> list[TopicPartition]:
    """The partitions asked for that there are."""
    topic = context.broker.catalog.get(asked.name)
    numbers = range(topic.partitions if topic else 0)
    return [(asked.name, each.index) for each in asked.partitions if each.index in numbers]


def _tell(context: RequestContext, group_id: str, codes: dict[TopicPartition, int]) -> None:
    for topic in dict.fromkeys(topic for (topic, _), code in codes.items() if not code):
        context.broker.audit.changed(context, "offsets deleted", group=group_id, topic=topic)


def _deleted(asked: TopicToDelete, codes: dict[TopicPartition, int]) -> DeletedTopic:
    return DeletedTopic(
        name=asked.name,
        partitions=[
            DeletedPartition(
                each.index, codes.get((asked.name, each.index), UnknownTopicError.code)
            )
            for each in asked.partitions
        ],
    )
