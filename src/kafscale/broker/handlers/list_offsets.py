"""ListOffsets: v0-11.

Behaviour:
* The latest offset (-1) is the high watermark, or the last stable offset for readers of committed
  records. The earliest (-2) and the earliest local one (-4) are the log start offset.
* A timestamp finds the first record at or after it, exactly; -3 finds the record with the greatest
  timestamp. If there is none, the offset is -1 without an error. These two may have to read from
  the object store; all others are answered at once. Readers of committed records do not get an
  offset from the last stable one on.
* There is no tiered storage, so -5 and -6 are answered with -1, as by a Kafka without it.
* Logs of internal topics are opened before they are answered.
* Requires DESCRIBE on each topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
* A client with another current leader epoch is refused: error 74 if it is older, 75 if newer.

Version notes:
* v0: base offsets of segments, up to the offset of the timestamp, latest first.
* v4+: the leader epoch of the offset in the response.
* -3 needs v7, -4 v8, -5 v9, -6 v11; before, and below -6, it is UNSUPPORTED_VERSION.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from itertools import islice
from typing import Final

from kafscale.broker.group_coordinator.shard_log import RECORDS_MAX, ShardLog
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared.fetch_reads import READ_COMMITTED, last_stable_offset
from kafscale.broker.shared.partition_lookup import (
    ReadableLog,
    check_leader_epoch,
    find_readable_by_name,
)
from kafscale.errors import (
    InvalidRequestError,
    KafscaleError,
    TopicAuthorizationError,
    UnknownApiError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.observability.logging import get_logger
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
from kafscale.text.topic_partition import TopicPartition

logger = get_logger(__name__)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = range(-1, -7, -1)

VERSION_MIN: Final = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING: 11,
}
"""The first version of each special timestamp."""

_NOT_FOUND: Final = TimedOffset(-1, -1, -1)

_Searches = list[Awaitable[None]]


def handle(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Awaitable[ListOffsetsResponse]:
    broker = context.broker
    is_internal = any(broker.topic_store.is_internal(topic.name) for topic in request.topics)
    if is_internal and not broker.groups.logs.are_open:
        return _open_and_handle(context, request)
    searches: _Searches = []
    counts = Counter(
        (topic.name, requested.index) for topic in request.topics for requested in topic.partitions
    )
    is_committed = request.isolation_level == READ_COMMITTED
    response = ListOffsetsResponse(
        topics=[
            _list_topic(context, topic, counts, searches, is_committed=is_committed)
            for topic in request.topics
        ]
    )
    return _await_searches(response, searches) if searches else response


async def _open_and_handle(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    await context.broker.groups.logs.open()
    response = handle(context, request)
    return response if isinstance(response, ListOffsetsResponse) else await response


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
    counts: Counter[TopicPartition],
    searches: _Searches,
    *,
    is_committed: bool,
) -> ListedTopic:
    if not context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return _failed(topic, TopicAuthorizationError.code)
    return ListedTopic(
        name=topic.name,
        partitions=[
            _list(
                context,
                topic,
                requested,
                searches,
                is_duplicate=counts[topic.name, requested.index] > 1,
                is_committed=is_committed,
            )
            for requested in topic.partitions
        ],
    )


def _list(
    context: RequestContext,
    topic: TopicToList,
    requested: PartitionToList,
    searches: _Searches,
    *,
    is_duplicate: bool,
    is_committed: bool,
) -> ListedPartition:
    """The result for one partition; a search that fills it in is added to `searches`."""
    listed = ListedPartition(index=requested.index)
    try:
        if is_duplicate:
            raise InvalidRequestError(f"partition {requested.index} appears twice")
        time = requested.timestamp_ms
        if time < 0 and context.version < VERSION_MIN.get(time, context.version + 1):
            raise UnknownApiError(f"v{context.version} does not support the timestamp {time}")
        log = find_readable_by_name(context.broker, topic.name, requested.index)
        check_leader_epoch(log, requested.current_leader_epoch)
        end_offset = last_stable_offset(log) if is_committed else None
        offset = _without_search(log, time, end_offset)
        if offset is None:
            searches.append(_search(context, log, requested, listed, end_offset))
        else:
            _fill_in(context, log, requested, listed, offset)
    except KafscaleError as error:
        listed.error_code = error.code
    return listed


def _without_search(log: ReadableLog, time: int, end_offset: int | None) -> TimedOffset | None:
    """The offset of a special timestamp, if no records have to be read."""
    if time == LATEST:
        latest = log.high_watermark if end_offset is None else end_offset
        return TimedOffset(latest, -1, log.leader_epoch)
    if time in {EARLIEST, EARLIEST_LOCAL}:
        return TimedOffset(log.start_offset, -1, _first_epoch(log))
    if time in {LATEST_TIERED, EARLIEST_PENDING}:
        return _NOT_FOUND
    return None


def _first_epoch(log: ReadableLog) -> int:
    for epoch, start_offset in log.epochs.entries():
        return epoch if start_offset <= log.start_offset else -1
    return -1


async def _search(
    context: RequestContext,
    log: ReadableLog,
    requested: PartitionToList,
    listed: ListedPartition,
    end_offset: int | None,
) -> None:
    """Fill in the offset of a timestamp, if it is below the end of what the client may read."""
    reader = context.broker.storage.reader
    try:
        offset: TimedOffset | None
        if isinstance(log, ShardLog):
            offset = await _search_shard(log, requested.timestamp_ms)
        elif requested.timestamp_ms == MAX_TIMESTAMP:
            offset = await timestamp_lookup.offset_of_max_timestamp(reader, log)
        else:
            offset = await timestamp_lookup.offset_for_timestamp(
                reader, log, requested.timestamp_ms
            )
    except KafscaleError as error:
        listed.error_code = error.code
    except Exception:
        # A boundary: the other partitions of this request are searched nevertheless.
        logger.exception("offset search failed", topic=log.topic, partition=log.partition)
        listed.error_code = KafscaleError.code
    else:
        if offset is None or (end_offset is not None and offset.offset >= end_offset):
            offset = _NOT_FOUND
        _fill_in(context, log, requested, listed, offset)


async def _search_shard(log: ShardLog, time: int) -> TimedOffset | None:
    found: TimedOffset | None = None
    for count, (offset, timestamp_ms) in enumerate(log.timestamps()):
        if time >= 0 and timestamp_ms >= time:
            return TimedOffset(offset, timestamp_ms, log.leader_epoch)
        if time == MAX_TIMESTAMP and (found is None or timestamp_ms > found.timestamp_ms):
            found = TimedOffset(offset, timestamp_ms, log.leader_epoch)
        if count % RECORDS_MAX == 0:
            await asyncio.sleep(0)
    return found


def _fill_in(
    context: RequestContext,
    log: ReadableLog,
    requested: PartitionToList,
    listed: ListedPartition,
    offset: TimedOffset,
) -> None:
    if context.version == 0:
        limit_offset = log.high_watermark if offset is _NOT_FOUND else offset.offset
        listed.offsets = _base_offsets(log, limit_offset, requested.max_offset_count)
    else:
        listed.offset = offset.offset
        listed.timestamp_ms = offset.timestamp_ms
        listed.leader_epoch = offset.leader_epoch


def _base_offsets(log: ReadableLog, limit_offset: int, count_max: int) -> list[int]:
    """The base offsets of segments, including the next one to be rolled, latest first."""
    offsets = [log.start_offset, log.high_watermark]
    if isinstance(log, PartitionLog):
        offsets += [segment.base_offset for segment in log.segments]
        offsets.append(log.segments.end_offset)
    within = {offset for offset in offsets if log.start_offset <= offset <= limit_offset}
    return list(islice(sorted(within, reverse=True), max(count_max, 0)))


async def _await_searches(
    response: ListOffsetsResponse, searches: _Searches
) -> ListOffsetsResponse:
    await asyncio.gather(*searches)
    return response
