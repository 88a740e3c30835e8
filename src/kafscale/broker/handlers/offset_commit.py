"""OffsetCommit: v0-10.

Behaviour:
* All offsets of a request are committed together, and answered once they are in the store. Those
  that cannot be are left out, each with an error of its own: UNKNOWN_TOPIC_OR_PARTITION, or
  OFFSET_METADATA_TOO_LARGE above `offsets.metadataMaxBytes`. That the group refuses is told for
  every partition that there is. A topic of which no partitions are named is passed over.
* Who is no member of a group (generation -1) may commit while it has no members; the group need not
  have been there before, and may have an empty name.
* Needs READ on the group, GROUP_AUTHORIZATION_FAILED otherwise for every partition; and READ on
  each topic, TOPIC_AUTHORIZATION_FAILED otherwise, whether it exists or not.
* An offset is that of the topic which has the name now: one created again begins anew.

Version notes:
* v0: nobody is a member. v1: the client says when each offset was committed.
* v2-4: the client says for how long to keep the offsets.
* v9+: members of the consumer protocol may commit, UNSUPPORTED_VERSION before; a member of a group
  that does not exist is GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION before.
* v10+: topics go by their id; UNKNOWN_TOPIC_ID where none has it.
"""

from collections.abc import Awaitable
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import (
    GroupError,
    KafscaleError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
    TopicAuthorizationError,
    UnknownApiError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import TopicPartition
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.messages.offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
    TopicToCommit,
)

CONSUMER_PROTOCOL_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 10

NOT_FOR_GROUPS: Final = {
    UnknownTopicError.code,
    UnknownTopicIdError.code,
    TopicAuthorizationError.code,
}
"""What is wrong with a partition before its group has a say."""

NOT_SAID: Final = -1
"""Stands for a time that the client leaves to us."""


def handle(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    offsets: dict[TopicPartition, CommittedOffset] = {}
    response = OffsetCommitResponse(
        topics=[_gather(context, request, topic, offsets) for topic in _named(request)]
    )
    if _is_nothing_there(response):
        return response
    committing = context.broker.groups.commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        offsets,
        version_knows_missing_groups=context.version >= CONSUMER_PROTOCOL_SINCE,
    )
    return _when_committed(committing, response)


def error_response(
    context: RequestContext, request: OffsetCommitRequest, error: KafscaleError
) -> OffsetCommitResponse:
    """The same error for every partition; that the group refuses, for those that there are."""
    code = error.code
    if isinstance(error, StaleMemberEpochError) and context.version < CONSUMER_PROTOCOL_SINCE:
        code = UnknownApiError.code

    def told(asked: TopicToCommit, partition: PartitionToCommit) -> int:
        if isinstance(error, GroupError):
            return _own_code(context, asked, partition) or code
        return code

    return OffsetCommitResponse(
        topics=[
            CommittedTopic(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=[
                    CommittedPartition(each.index, told(asked, each)) for each in asked.partitions
                ],
            )
            for asked in _named(request)
        ]
    )


def _named(request: OffsetCommitRequest) -> list[TopicToCommit]:
    return [topic for topic in request.topics if topic.partitions]


def _is_nothing_there(response: OffsetCommitResponse) -> bool:
    """Whether there is nothing that the group could be asked for."""
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    return codes <= NOT_FOR_GROUPS


async def _when_committed(
    committing: Awaitable[None], response: OffsetCommitResponse
) -> OffsetCommitResponse:
    await committing
    return response


def _gather(
    context: RequestContext,
    request: OffsetCommitRequest,
    asked: TopicToCommit,
    offsets: dict[TopicPartition, CommittedOffset],
) -> CommittedTopic:
    """Add what can be committed of a topic to `offsets`, and answer for all of it."""
    answer = CommittedTopic(name=asked.name, topic_id=asked.topic_id)
    try:
        topic = _topic(context, asked)
    except KafscaleError as error:
        answer.partitions = [
            CommittedPartition(each.index, error.code) for each in asked.partitions
        ]
        return answer
    for partition in asked.partitions:
        code = 0
        try:
            _check_partition(topic, partition)
            _check_metadata(context, partition)
            offsets[topic.name, partition.index] = _offset(context, request, topic, partition)
        except KafscaleError as error:
            code = error.code
        answer.partitions.append(CommittedPartition(partition.index, code))
    return answer


def _own_code(context: RequestContext, asked: TopicToCommit, partition: PartitionToCommit) -> int:
    """What is wrong with a partition itself."""
    try:
        _check_partition(_topic(context, asked, quiet=True), partition)
    except KafscaleError as error:
        return error.code
    return 0


def _topic(context: RequestContext, asked: TopicToCommit, *, quiet: bool = False) -> Topic:
    """The topic that is meant, if there is one and the client may read it."""
    catalog = context.broker.catalog
    if context.version >= TOPIC_IDS_SINCE:
        topic = catalog.by_id.get(asked.topic_id)
        unknown: KafscaleError = UnknownTopicIdError("no topic has this id")
    else:
        topic = catalog.get(asked.name)
        unknown = UnknownTopicError(f"there is no topic {asked.name!r}")
    name = topic.name if topic else asked.name
    # Of a topic that nobody has, only a name says whether the client may ask for it.
    if name and not context.is_authorized(Operation.READ, ResourceType.TOPIC, name, quiet=quiet):
        raise TopicAuthorizationError("not allowed to read the topic")
    if topic is None:
        raise unknown
    return topic


def _check_partition(topic: Topic, partition: PartitionToCommit) -> None:
    if not 0 <= partition.index < topic.partitions:
        raise UnknownTopicError(f"topic {topic.name!r} has no partition {partition.index}")


def _check_metadata(context: RequestContext, partition: PartitionToCommit) -> None:
    size_bytes = len((partition.metadata or "").encode())
    if size_bytes > context.broker.config.offsets.metadata_bytes_max:
        raise OffsetMetadataTooLargeError(f"the metadata has {size_bytes} bytes")


def _offset(
    context: RequestContext,
    request: OffsetCommitRequest,
    topic: Topic,
    partition: PartitionToCommit,
) -> CommittedOffset:
    now_ms = context.received_ms
    retention_ms = request.retention_time_ms
    is_dated = partition.commit_time_ms != NOT_SAID
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.leader_epoch,
        metadata=partition.metadata or "",
        committed_ms=partition.commit_time_ms if is_dated else now_ms,
        expires_ms=None if retention_ms == NOT_SAID else now_ms + retention_ms,
        topic_id=topic.id,
    )
