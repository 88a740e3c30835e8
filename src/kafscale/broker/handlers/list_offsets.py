"""ListOffsets: v0-11.

Behaviour:
* The next offset (-1) is the high watermark for either isolation level: there are no transactions.
  The first one (-2), and the first held locally (-4), is the log's start.
* A time finds the first record at or after it, exactly; -3 finds the newest record. Nothing found
  is the offset -1 and no error. These may have to read from the store, all others answer at once.
* Nothing is tiered behind our backs, so -5 and -6 are answered as by a Kafka without tiered
  storage: with -1.
* Needs DESCRIBE on each topic, TOPIC_AUTHORIZATION_FAILED otherwise, whether it exists or not.
* A leader epoch that the client believes in and that is not ours is refused: 74 older, 75 newer.

Version notes:
* v0: offsets at which segments begin, none above that of the time, the latest first.
* v4+: the leader epoch of the offset in the answer.
* -3 needs v7, -4 v8, -5 v9, -6 v11; before, and below -6, it is UNSUPPORTED_VERSION.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from itertools import islice
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.partition_lookup import check_leader_epoch, find_by_name
from kafscale.errors import (
    InvalidRequestError,
    KafscaleError,
    TopicAuthorizationError,
    UnknownApiError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.list_offsets import (
    ListedPartition,
    ListedTopic,
    ListOffsetsRequest,
    ListOffsetsResponse,
    PartitionToList,
    TopicToList,
)
from kafscale.storage.log import timestamp_lookup
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.log.timestamp_lookup import TimedOffset

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6

VERSION_MIN: Final = {
    LATEST: 0,
    EARLIEST: 0,
    NEWEST: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
"""Since which version a time below 0 means something."""

_NOTHING: Final = TimedOffset(-1, -1, -1)

_Searches = list[Awaitable[None]]


def handle(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    searches: _Searches = []
    named = Counter(
        (topic.name, asked.index) for topic in request.topics for asked in topic.partitions
    )
    response = ListOffsetsResponse(
        topics=[_list_topic(context, topic, named, searches) for topic in request.topics]
    )
    return _when_found(response, searches) if searches else response


def error_response(
    _context: RequestContext, request: ListOffsetsRequest, error: KafscaleError
) -> ListOffsetsResponse:
    """The same error for every partition."""
    return ListOffsetsResponse(topics=[_failed(topic, error.code) for topic in request.topics])


def _failed(topic: TopicToList, code: int) -> ListedTopic:
    return ListedTopic(
        name=topic.name,
        partitions=[
            ListedPartition(index=each.index, error_code=code) for each in topic.partitions
        ],
    )


def _list_topic(
    context: RequestContext,
    topic: TopicToList,
    named: Counter[tuple[str, int]],
    searches: _Searches,
) -> ListedTopic:
    if not context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return _failed(topic, TopicAuthorizationError.code)
    return ListedTopic(
        name=topic.name,
        partitions=[
            _list(context, topic, asked, named[topic.name, asked.index] > 1, searches)
            for asked in topic.partitions
        ],
    )


def _list(
    context: RequestContext,
    topic: TopicToList,
    asked: PartitionToList,
    is_duplicate: bool,
    searches: _Searches,
) -> ListedPartition:
    """Answer for one partition, at once or by a search that fills it in."""
    listed = ListedPartition(index=asked.index)
    try:
        if is_duplicate:
            raise InvalidRequestError(f"partition {asked.index} is named twice")
        time = asked.timestamp_ms
        if time < 0 and context.version < VERSION_MIN.get(time, context.version + 1):
            raise UnknownApiError(f"v{context.version} does not know the time {time}")
        partition = find_by_name(context.broker, topic.name, asked.index)
        check_leader_epoch(partition, asked.current_leader_epoch)
        known = _known(partition, time)
        if known is None:
            searches.append(_search(context, partition, asked, listed))
        else:
            _fill_in(context, partition, asked, listed, known)
    except KafscaleError as error:
        listed.error_code = error.code
    return listed


def _known(partition: PartitionLog, time: int) -> TimedOffset | None:
    """What can be said without looking at records."""
    if time == LATEST:
        return TimedOffset(partition.high_watermark, -1, partition.leader_epoch)
    if time in {EARLIEST, EARLIEST_LOCAL}:
        return TimedOffset(partition.start_offset, -1, _first_epoch(partition))
    if time in {LATEST_TIERED, EARLIEST_PENDING}:
        return _NOTHING
    return None


def _first_epoch(partition: PartitionLog) -> int:
    for epoch, start_offset in partition.epochs.entries():
        return epoch if start_offset <= partition.start_offset else -1
    return -1


async def _search(
    context: RequestContext,
    partition: PartitionLog,
    asked: PartitionToList,
    listed: ListedPartition,
) -> None:
    reader = context.broker.storage.reader
    try:
        if asked.timestamp_ms == NEWEST:
            found = await timestamp_lookup.offset_of_max_timestamp(reader, partition)
        else:
            found = await timestamp_lookup.offset_for_timestamp(
                reader, partition, asked.timestamp_ms
            )
    except KafscaleError as error:
        listed.error_code = error.code
    else:
        _fill_in(context, partition, asked, listed, found or _NOTHING)


def _fill_in(
    context: RequestContext,
    partition: PartitionLog,
    asked: PartitionToList,
    listed: ListedPartition,
    found: TimedOffset,
) -> None:
    if context.version == 0:
        limit_offset = partition.high_watermark if found is _NOTHING else found.offset
        listed.offsets = _starts(partition, limit_offset, asked.max_offset_count)
    else:
        listed.offset = found.offset
        listed.timestamp_ms = found.timestamp_ms
        listed.leader_epoch = found.leader_epoch


def _starts(partition: PartitionLog, limit_offset: int, count_max: int) -> list[int]:
    """Where segments begin, the one that is next to be written included, the latest first."""
    starts = [
        partition.start_offset,
        *(segment.base_offset for segment in partition.segments),
        partition.segments.end_offset,
        partition.high_watermark,
    ]
    within = {start for start in starts if partition.start_offset <= start <= limit_offset}
    return list(islice(sorted(within, reverse=True), max(count_max, 0)))


async def _when_found(response: ListOffsetsResponse, searches: _Searches) -> ListOffsetsResponse:
    await asyncio.gather(*searches)
    return response
