"""OffsetFetch: v0-10.

Behaviour:
* The committed offsets of the requested partitions, or of all that the group has; offset -1 without
  an error if there is none, whether partition, topic and group exist or not.
* An offset of an earlier topic of the same name does not count.
* Requires DESCRIBE on each group, else GROUP_AUTHORIZATION_FAILED; and on each requested topic,
  else TOPIC_AUTHORIZATION_FAILED. A request for all topics leaves out others.
* The offsets of a transaction count once it is committed. A request that requires stable offsets
  gets UNSTABLE_OFFSET_COMMIT for a partition that an open transaction may change, and asks again.
* A repeated group or partition is answered again, as in Kafka; if that is a lot, INVALID_REQUEST.
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

from collections import defaultdict
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafscale.broker.requests import slices
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.repeats import Repeats
from kafscale.broker.requests.slices import Work
from kafscale.errors import (
    CoordinatorLoadingError,
    CoordinatorUnavailableError,
    InvalidRequestError,
    KafscaleError,
    NotCoordinatorError,
    TopicAuthorizationError,
    UnknownTopicIdError,
    UnstableOffsetCommitError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic
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

PARTITIONS_AT_ONCE: Final = 500

COPIED_PER_RESULT: Final = 50
GROUPED_PER_RESULT: Final = 10
METADATA_PER_RESULT: Final = 100
"""How many offsets are copied or grouped by topic in the time, and how many characters of metadata
are sent in the memory, of another partition in the response."""

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


def handle(
    context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Awaitable[OffsetFetchResponse]:
    return slices.serve(context, _fetch_groups(context, request))


def error_response(
    context: RequestContext, request: OffsetFetchRequest, error: KafscaleError
) -> OffsetFetchResponse:
    """The same error for every group."""
    return _response(
        context, [_whole(_failed(context, group, error)) for group in _groups(context, request)]
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


def _fetch_groups(
    context: RequestContext, request: OffsetFetchRequest
) -> Work[OffsetFetchResponse]:
    repeats = Repeats()
    fetched = []
    for group in _groups(context, request):
        yield slices.ELEMENT_RESULTS
        fetched.append(
            (yield from _fetch(context, group, repeats, is_stable=request.require_stable))
        )
    return _response(context, fetched)


def _fetch(
    context: RequestContext, group: GroupToFetch, repeats: Repeats, *, is_stable: bool
) -> Work[FetchedGroup]:
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        groups = context.broker.groups
        committed = groups.fetch(group.group_id, group.member_id, group.member_epoch)
        unstable = groups.unstable_offsets(group.group_id) if is_stable else ()
        if group.topics is None:
            repeats.check(group.group_id)
    except KafscaleError as error:
        return (yield from _failed(context, group, error))
    fetched = FetchedGroup(group_id=group.group_id)
    if group.topics is None:
        # Copied, as in the next case: what a transaction commits is read as a whole, or not at all.
        offsets = _Offsets(dict(committed), unstable)
        fetched.topics = yield from _fetch_all(context, offsets)
        results = sum(len(topic.partitions) for topic in fetched.topics)
        repeats.add(group.group_id, 1 + results)
        return fetched
    if sum(len(requested.partitions) for requested in group.topics) > PARTITIONS_AT_ONCE:
        committed = dict(committed)
        yield len(committed) // COPIED_PER_RESULT
    offsets = _Offsets(committed, unstable)
    for requested in group.topics:
        topic = yield from _fetch_topic(context, group.group_id, requested, offsets, repeats)
        fetched.topics.append(topic)
    return fetched


def _failed(
    context: RequestContext, group: GroupToFetch, error: KafscaleError
) -> Work[FetchedGroup]:
    failed = FetchedGroup(group_id=group.group_id, error_code=error.code)
    if context.version >= GROUP_ERRORS_SINCE and not isinstance(error, COORDINATOR_ERRORS):
        return failed
    for requested in group.topics or []:
        topic = FetchedTopic(name=requested.name, topic_id=requested.topic_id)
        failed.topics.append(topic)
        for part in _parts(requested.partitions):
            topic.partitions += [_not_committed(each, error.code) for each in part]
            yield slices.ELEMENT_RESULTS + len(part)
    return failed


def _fetch_topic(
    context: RequestContext,
    group_id: str,
    requested: TopicToFetch,
    offsets: _Offsets,
    repeats: Repeats,
) -> Work[FetchedTopic]:
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
    for part in _parts(requested.partitions):
        results = slices.ELEMENT_RESULTS
        for index in part:
            fetched = _fetch_partition(topic, name, index, offsets, code)
            name_of_repeats = (group_id, name or requested.topic_id, index)
            try:
                repeats.check(name_of_repeats)
            except InvalidRequestError as error:
                fetched = _not_committed(index, error.code)
            repeats.add(name_of_repeats, _results(fetched))
            result.partitions.append(fetched)
            results += _results(fetched)
        yield results
    return result


def _fetch_partition(
    topic: Topic | None, name: str, index: int, offsets: _Offsets, code: int
) -> FetchedPartition:
    topic_partition = (name, index)
    offset = offsets.committed.get(topic_partition)
    if topic and topic_partition in offsets.unstable:
        return _not_committed(index, UnstableOffsetCommitError.code)
    if topic and offset and offset.is_of(topic.id):
        return _partition(index, offset)
    return _not_committed(index, code)


def _fetch_all(context: RequestContext, offsets: _Offsets) -> Work[list[FetchedTopic]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    yield len(offsets.committed) // COPIED_PER_RESULT
    for count, (name, index) in enumerate(offsets.committed, 1):
        by_topic[name].append(index)
        if count % PARTITIONS_AT_ONCE == 0:
            yield PARTITIONS_AT_ONCE // GROUPED_PER_RESULT
    topics = []
    for name in sorted(by_topic):
        yield slices.ELEMENT_RESULTS
        topic = context.broker.topic_store.find(name)
        if topic is None or not context.can_describe(ResourceType.TOPIC, name):
            continue
        result = FetchedTopic(name=name, topic_id=topic.id)
        for part in _parts(sorted(by_topic[name])):
            fetched = [
                _fetch_partition(topic, name, index, offsets, 0)
                for index in part
                if offsets.committed[name, index].is_of(topic.id)
            ]
            result.partitions += fetched
            yield sum(map(_results, fetched))
        if result.partitions:
            topics.append(result)
    return topics


def _parts(indexes: Sequence[int]) -> Iterator[Sequence[int]]:
    """The partitions of a topic, some at a time."""
    for start in range(0, len(indexes), PARTITIONS_AT_ONCE):
        yield indexes[start : start + PARTITIONS_AT_ONCE]


def _results(partition: FetchedPartition) -> int:
    """What a partition with its offset takes; its metadata may be long."""
    return 1 + len(partition.metadata or "") // METADATA_PER_RESULT


def _whole(work: Work[FetchedGroup]) -> FetchedGroup:
    """The result of work that need not be done in slices."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            whole: FetchedGroup = end.value
            return whole


def _partition(index: int, offset: CommittedOffset) -> FetchedPartition:
    return FetchedPartition(
        index=index,
        committed_offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def _not_committed(index: int, code: int) -> FetchedPartition:
    return FetchedPartition(index=index, committed_offset=NOT_COMMITTED, error_code=code)
