"""OffsetFetch: v0-10.

Behaviour:
* The committed offsets of the requested partitions, or of all that the group has; offset -1 without
  an error if there is none, whether partition, topic and group exist or not.
* An offset of an earlier topic of the same name does not count.
* Requires DESCRIBE on each group, else GROUP_AUTHORIZATION_FAILED; and on each requested topic,
  else TOPIC_AUTHORIZATION_FAILED. A request for all topics leaves out others.
* The offsets of a transaction count once it is committed. A request that requires stable offsets
  gets UNSTABLE_OFFSET_COMMIT for a partition that an open transaction may change, and asks again.
* While a group moves to another broker or is loaded, the error is returned for each requested
  partition as well. Apache Kafka leaves out the partitions from v2 on: aiokafka then takes them for
  partitions without a committed offset and consumes them from the beginning, and librdkafka (#5586)
  does not fetch them again.

Version notes:
* v0-1: an error of the group is returned for each partition; v2+: once, in a field of its own.
* v2+: null topics mean all.
* v7+: stable offsets may be required.
* v8+: any number of groups, each with its own error.
* v9+: a member of the consumer protocol sends its id and epoch; an old epoch is refused.
* v10+: topics are identified by id; UNKNOWN_TOPIC_ID for each partition if there is none.
"""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    KafscaleError,
    NotCoordinatorError,
    TopicAuthorizationError,
    UnknownTopicIdError,
    UnstableOffsetCommitError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.offset_fetch import (
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    GroupToFetch,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicToFetch,
)
from kafscale.text.topic_partition import TopicPartition

GROUP_ERRORS_SINCE: Final = 2
BATCHES_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10

NOT_COMMITTED: Final = -1

COORDINATOR_ERRORS: Final = (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    NotCoordinatorError,
)


class _Offsets(NamedTuple):
    """The offsets of a group."""

    committed: Mapping[TopicPartition, CommittedOffset]
    unstable: Collection[TopicPartition]
    """The partitions whose offset must not be read now."""


def handle(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    groups = _groups(context, request)
    return _response(
        context, [_fetch(context, each, is_stable=request.require_stable) for each in groups]
    )


def error_response(
    context: RequestContext, request: OffsetFetchRequest, error: KafscaleError
) -> OffsetFetchResponse:
    """The same error for every group."""
    return _response(
        context, [_failed(context, group, error) for group in _groups(context, request)]
    )


def _groups(context: RequestContext, request: OffsetFetchRequest) -> Sequence[GroupToFetch]:
    if context.version >= BATCHES_SINCE:
        return request.groups
    return [GroupToFetch(group_id=request.group_id, topics=request.topics)]


def _response(context: RequestContext, groups: list[FetchedGroup]) -> OffsetFetchResponse:
    if context.version >= BATCHES_SINCE:
        return OffsetFetchResponse(groups=groups)
    [only] = groups
    return OffsetFetchResponse(topics=only.topics, error_code=only.error_code)


def _fetch(context: RequestContext, group: GroupToFetch, *, is_stable: bool) -> FetchedGroup:
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        groups = context.broker.groups
        committed = groups.fetch(group.group_id, group.member_id, group.member_epoch)
        unstable = groups.unstable_offsets(group.group_id) if is_stable else ()
    except KafscaleError as error:
        return _failed(context, group, error)
    offsets = _Offsets(committed, unstable)
    if group.topics is None:
        topics = _fetch_all(context, offsets)
    else:
        topics = [_fetch_topic(context, requested, offsets) for requested in group.topics]
    return FetchedGroup(group_id=group.group_id, topics=topics)


def _failed(context: RequestContext, group: GroupToFetch, error: KafscaleError) -> FetchedGroup:
    if context.version >= GROUP_ERRORS_SINCE and not isinstance(error, COORDINATOR_ERRORS):
        return FetchedGroup(group_id=group.group_id, error_code=error.code)
    topics = [
        FetchedTopic(
            name=requested.name,
            topic_id=requested.topic_id,
            partitions=[_not_committed(each, error.code) for each in requested.partitions],
        )
        for requested in group.topics or []
    ]
    return FetchedGroup(group_id=group.group_id, topics=topics, error_code=error.code)


def _fetch_topic(
    context: RequestContext, requested: TopicToFetch, offsets: _Offsets
) -> FetchedTopic:
    topic_store = context.broker.topic_store
    result = FetchedTopic(name=requested.name, topic_id=requested.topic_id)
    code = 0
    if context.version >= TOPIC_IDS_SINCE:
        topic = topic_store.find_by_id(requested.topic_id)
        code = 0 if topic else UnknownTopicIdError.code
    else:
        topic = topic_store.find(requested.name)
    name = topic.name if topic else requested.name
    # A topic that does not exist can be authorized by name only.
    if name and not context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
        topic, code = None, TopicAuthorizationError.code
    for index in requested.partitions:
        topic_partition = (name, index)
        offset = offsets.committed.get(topic_partition)
        if topic and topic_partition in offsets.unstable:
            result.partitions.append(_not_committed(index, UnstableOffsetCommitError.code))
        elif topic and offset and offset.is_of(topic.id):
            result.partitions.append(_partition(index, offset))
        else:
            result.partitions.append(_not_committed(index, code))
    return result


def _fetch_all(context: RequestContext, offsets: _Offsets) -> list[FetchedTopic]:
    topics: dict[str, FetchedTopic] = {}
    for (name, index), offset in sorted(offsets.committed.items(), key=itemgetter(0)):
        topic = context.broker.topic_store.find(name)
        if topic and offset.is_of(topic.id) and context.can_describe(ResourceType.TOPIC, name):
            result = topics.setdefault(name, FetchedTopic(name=name, topic_id=topic.id))
            is_unstable = (name, index) in offsets.unstable
            result.partitions.append(
                _not_committed(index, UnstableOffsetCommitError.code)
                if is_unstable
                else _partition(index, offset)
            )
    return list(topics.values())


def _partition(index: int, offset: CommittedOffset) -> FetchedPartition:
    return FetchedPartition(
        index=index,
        committed_offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def _not_committed(index: int, code: int) -> FetchedPartition:
    return FetchedPartition(index=index, committed_offset=NOT_COMMITTED, error_code=code)
