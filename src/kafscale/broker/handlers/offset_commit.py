"""OffsetCommit: v0-10.

Behaviour:
* All offsets of a request are committed together, and the response is sent once they are stored.
  Invalid ones are left out, each with its own error: UNKNOWN_TOPIC_OR_PARTITION, or
  OFFSET_METADATA_TOO_LARGE above `offsets.metadataMaxBytes`. An error of the group is returned for
  every partition that exists. A topic without partitions is ignored.
* A commit above the limits of its user or group waits, and later requests of the connection with
  it; then it is refused with COORDINATOR_LOAD_IN_PROGRESS, which clients retry.
* A client that is not a member (generation -1) may commit while the group has no members; the group
  need not exist before, and may have an empty id.
* Requires READ on the group, else GROUP_AUTHORIZATION_FAILED for every partition; and READ on each
  topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
* An offset belongs to the topic that has the name now: a recreated topic has none.

Version notes:
* v0: no client is a member. v1: the client sends the commit time of each offset.
* v2-4: the client sends the retention time of the offsets.
* v9+: members of the consumer protocol may commit, UNSUPPORTED_VERSION before; a member of a group
  that does not exist is GROUP_ID_NOT_FOUND, ILLEGAL_GENERATION before.
* v10+: topics are identified by id; UNKNOWN_TOPIC_ID if there is none.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from kafscale.broker.group_coordinator.commit_limits import MUTE_MS, commit_bytes
from kafscale.broker.group_coordinator.group_registry import check_group_id
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.offset_commits import (
    PARTITION_ERRORS,
    check_metadata,
    check_partition,
    check_topic,
)
from kafscale.errors import (
    CommitsThrottledError,
    GroupError,
    KafscaleError,
    StaleMemberEpochError,
    UnknownApiError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.groups.committed_offsets import CommittedOffset
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
from kafscale.text.topic_partition import TopicPartition

CONSUMER_PROTOCOL_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 10

NO_TIME: Final = -1
"""The value of a time that the client does not set."""


def handle(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Awaitable[OffsetCommitResponse]:
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    offsets, response = _collect_all(context, request)
    if _is_nothing_to_commit(response):
        return response
    check_group_id(request.group_id)
    user, size_bytes = context.client.principal.user, commit_bytes(request.group_id, offsets)
    if context.broker.commit_limits.try_admit(user, request.group_id, size_bytes):
        return _commit(context, request, offsets, response)
    waiting = asyncio.ensure_future(_commit_later(context, request, user, size_bytes))
    # A client may commit and leave its group without waiting for the response.
    context.client.hold = waiting
    return waiting


def error_response(
    context: RequestContext, request: OffsetCommitRequest, error: KafscaleError
) -> OffsetCommitResponse:
    """The same error for every partition; an error of the group, for those that exist."""
    code = error.code
    if isinstance(error, StaleMemberEpochError) and context.version < CONSUMER_PROTOCOL_SINCE:
        code = UnknownApiError.code

    def error_code(requested: TopicToCommit, partition: PartitionToCommit) -> int:
        if isinstance(error, GroupError):
            return _partition_error(context, requested, partition) or code
        return code

    return OffsetCommitResponse(
        throttle_time_ms=MUTE_MS if isinstance(error, CommitsThrottledError) else 0,
        topics=[
            CommittedTopic(
                name=requested.name,
                topic_id=requested.topic_id,
                partitions=[
                    CommittedPartition(each.index, error_code(requested, each))
                    for each in requested.partitions
                ],
            )
            for requested in _with_partitions(request)
        ],
    )


def _with_partitions(request: OffsetCommitRequest) -> list[TopicToCommit]:
    return [topic for topic in request.topics if topic.partitions]


def _is_nothing_to_commit(response: OffsetCommitResponse) -> bool:
    """Whether every partition has an error that takes precedence over the group's."""
    codes = {each.error_code for topic in response.topics for each in topic.partitions}
    return codes <= PARTITION_ERRORS


def _commit(
    context: RequestContext,
    request: OffsetCommitRequest,
    offsets: dict[TopicPartition, CommittedOffset],
    response: OffsetCommitResponse,
) -> Awaitable[OffsetCommitResponse]:
    committing = context.broker.groups.commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        offsets,
        version_knows_missing_groups=context.version >= CONSUMER_PROTOCOL_SINCE,
    )
    return _await_commit(committing, response)


async def _await_commit(
    committing: Awaitable[None], response: OffsetCommitResponse
) -> OffsetCommitResponse:
    await committing
    return response


async def _commit_later(
    context: RequestContext, request: OffsetCommitRequest, user: str, size_bytes: int
) -> OffsetCommitResponse:
    """Commit once the limits allow it; topics, permissions and the group may be others then."""
    try:
        await context.broker.commit_limits.wait(user, request.group_id, size_bytes)
    except CommitsThrottledError:
        context.client.throttled_ms = max(context.client.throttled_ms, MUTE_MS)
        raise
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    offsets, response = _collect_all(context, request)
    if _is_nothing_to_commit(response):
        return response
    return await _commit(context, request, offsets, response)


def _collect_all(
    context: RequestContext, request: OffsetCommitRequest
) -> tuple[dict[TopicPartition, CommittedOffset], OffsetCommitResponse]:
    """The valid offsets, and the response if they are committed."""
    offsets: dict[TopicPartition, CommittedOffset] = {}
    topics = [_collect(context, request, topic, offsets) for topic in _with_partitions(request)]
    return offsets, OffsetCommitResponse(topics=topics)


def _collect(
    context: RequestContext,
    request: OffsetCommitRequest,
    requested: TopicToCommit,
    offsets: dict[TopicPartition, CommittedOffset],
) -> CommittedTopic:
    """Add the valid offsets of a topic to `offsets`; returns the results of its partitions."""
    result = CommittedTopic(name=requested.name, topic_id=requested.topic_id)
    try:
        topic = _topic(context, requested)
    except KafscaleError as error:
        result.partitions = [
            CommittedPartition(each.index, error.code) for each in requested.partitions
        ]
        return result
    for partition in requested.partitions:
        code = 0
        try:
            check_partition(topic, partition.index)
            check_metadata(context, partition.metadata)
            offsets[topic.name, partition.index] = _offset(context, request, topic, partition)
        except KafscaleError as error:
            code = error.code
        result.partitions.append(CommittedPartition(partition.index, code))
    return result


def _partition_error(
    context: RequestContext, requested: TopicToCommit, partition: PartitionToCommit
) -> int:
    """The error code of a partition, apart from its group; 0 if there is none."""
    try:
        check_partition(_topic(context, requested, quiet=True), partition.index)
    except KafscaleError as error:
        return error.code
    return 0


def _topic(context: RequestContext, requested: TopicToCommit, *, quiet: bool = False) -> Topic:
    """The requested topic; raises if it does not exist or the client may not read it."""
    topic_store = context.broker.topic_store
    if context.version >= TOPIC_IDS_SINCE:
        topic = topic_store.find_by_id(requested.topic_id)
        unknown: KafscaleError = UnknownTopicIdError("no topic has this id")
    else:
        topic = topic_store.find(requested.name)
        unknown = UnknownTopicError(f"topic {requested.name!r} does not exist")
    return check_topic(context, topic, requested.name, unknown, quiet=quiet)


def _offset(
    context: RequestContext,
    request: OffsetCommitRequest,
    topic: Topic,
    partition: PartitionToCommit,
) -> CommittedOffset:
    now_ms = context.received_ms
    retention_ms = request.retention_time_ms
    has_commit_time = partition.commit_time_ms != NO_TIME
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=partition.leader_epoch,
        metadata=partition.metadata or "",
        committed_ms=partition.commit_time_ms if has_commit_time else now_ms,
        expires_ms=None if retention_ms == NO_TIME else now_ms + retention_ms,
        topic_id=topic.id,
    )
