"""OffsetFetch: v0-10.

Behaviour:
* What is committed, for the partitions asked for or for all that the group has; offset -1 and no
  error where nothing is, whether the partition, the topic and the group exist or not.
* An offset that was committed for an earlier topic of the same name counts as none.
* Needs DESCRIBE on each group, GROUP_AUTHORIZATION_FAILED otherwise; and on each topic that is
  named, TOPIC_AUTHORIZATION_FAILED otherwise. Of all topics, others are not told.
* There are no transactions, so that every offset is stable.

Version notes:
* v0-1: what goes wrong with the group is told for each partition; v2+: once, and no partitions.
* v2+: null topics ask for all.
* v8+: any number of groups, each with an error of its own.
* v9+: a member of the consumer protocol says who it is, and is refused with an epoch of old.
* v10+: topics go by their id; UNKNOWN_TOPIC_ID for each partition where none has it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError, TopicAuthorizationError, UnknownTopicIdError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.groups.model import TopicPartition
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

GROUP_ERRORS_SINCE: Final = 2
SEVERAL_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10

NOT_COMMITTED: Final = -1

_Offsets = Mapping[TopicPartition, CommittedOffset]


def handle(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    return _response(context, [_fetch(context, group) for group in _groups(context, request)])


def error_response(
    context: RequestContext, request: OffsetFetchRequest, error: KafscaleError
) -> OffsetFetchResponse:
    """The same error for every group."""
    return _response(
        context, [_failed(context, group, error) for group in _groups(context, request)]
    )


def _groups(context: RequestContext, request: OffsetFetchRequest) -> Sequence[GroupToFetch]:
    if context.version >= SEVERAL_SINCE:
        return request.groups
    return [GroupToFetch(group_id=request.group_id, topics=request.topics)]


def _response(context: RequestContext, groups: list[FetchedGroup]) -> OffsetFetchResponse:
    if context.version >= SEVERAL_SINCE:
        return OffsetFetchResponse(groups=groups)
    [only] = groups
    return OffsetFetchResponse(topics=only.topics, error_code=only.error_code)


def _fetch(context: RequestContext, group: GroupToFetch) -> FetchedGroup:
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        committed = context.broker.groups.fetch(group.group_id, group.member_id, group.member_epoch)
    except KafscaleError as error:
        return _failed(context, group, error)
    if group.topics is None:
        topics = _all(context, committed)
    else:
        topics = [_asked(context, asked, committed) for asked in group.topics]
    return FetchedGroup(group_id=group.group_id, topics=topics)


def _failed(context: RequestContext, group: GroupToFetch, error: KafscaleError) -> FetchedGroup:
    code = error.code
    if context.version >= GROUP_ERRORS_SINCE:
        return FetchedGroup(group_id=group.group_id, error_code=code)
    topics = [
        FetchedTopic(
            name=asked.name, partitions=[_nothing(each, code) for each in asked.partitions]
        )
        for asked in group.topics or []
    ]
    return FetchedGroup(group_id=group.group_id, topics=topics)


def _asked(context: RequestContext, asked: TopicToFetch, committed: _Offsets) -> FetchedTopic:
    catalog = context.broker.catalog
    answer = FetchedTopic(name=asked.name, topic_id=asked.topic_id)
    code = 0
    if context.version >= TOPIC_IDS_SINCE:
        topic = catalog.by_id.get(asked.topic_id)
        code = 0 if topic else UnknownTopicIdError.code
    else:
        topic = catalog.get(asked.name)
    name = topic.name if topic else asked.name
    # Of a topic that nobody has, only a name says whether the client may ask for it.
    if name and not context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
        topic, code = None, TopicAuthorizationError.code
    for index in asked.partitions:
        found = committed.get((topic.name, index)) if topic else None
        if topic and found and found.is_of(topic.id):
            answer.partitions.append(_partition(index, found))
        else:
            answer.partitions.append(_nothing(index, code))
    return answer


def _all(context: RequestContext, committed: _Offsets) -> list[FetchedTopic]:
    topics: dict[str, FetchedTopic] = {}
    for (name, index), found in sorted(committed.items(), key=lambda each: each[0]):
        topic = context.broker.catalog.get(name)
        if topic and found.is_of(topic.id) and context.can_describe(ResourceType.TOPIC, name):
            answer = topics.setdefault(name, FetchedTopic(name=name, topic_id=topic.id))
            answer.partitions.append(_partition(index, found))
    return list(topics.values())


def _partition(index: int, found: CommittedOffset) -> FetchedPartition:
    return FetchedPartition(
        index=index,
        committed_offset=found.offset,
        leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def _nothing(index: int, code: int) -> FetchedPartition:
    return FetchedPartition(index=index, committed_offset=NOT_COMMITTED, error_code=code)
