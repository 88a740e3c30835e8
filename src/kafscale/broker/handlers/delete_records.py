"""DeleteRecords: v0-2.

Behaviour:
* An offset becomes the first of its log, and is remembered before the answer; what lies below it is
  not served any more, and its objects go with the next round of retention.
* A topic that is compacted only keeps the newest record of each key, so that nothing can be deleted
  from it: POLICY_VIOLATION.
* -1 is the high watermark, which leaves nothing. An offset that was deleted before changes nothing
  and is no error; one above the high watermark is OFFSET_OUT_OF_RANGE.
* Each partition succeeds or fails on its own.
* Needs DELETE on each topic, TOPIC_AUTHORIZATION_FAILED otherwise, whether it exists or not.

Version notes: all versions are served alike.
"""

import asyncio
from typing import Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.shared import topic_admission
from kafscale.broker.shared.partition_lookup import find_by_name
from kafscale.errors import KafscaleError, OffsetOutOfRangeError, PolicyViolationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    PartitionToTrim,
    TopicToTrim,
    TrimmedPartition,
    TrimmedTopic,
)

HIGH_WATERMARK: Final = -1
NO_LOW_WATERMARK: Final = -1


async def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    topic_admission.check_admin_allowed(context.broker)
    topics = await asyncio.gather(*(_trim_topic(context, topic) for topic in request.topics))
    return DeleteRecordsResponse(topics=topics)


def error_response(
    _context: RequestContext, request: DeleteRecordsRequest, error: KafscaleError
) -> DeleteRecordsResponse:
    """The same error for every partition."""
    return DeleteRecordsResponse(topics=[_failed_topic(topic, error) for topic in request.topics])


def _failed_topic(topic: TopicToTrim, error: KafscaleError) -> TrimmedTopic:
    return TrimmedTopic(
        name=topic.name,
        partitions=[_failed(partition.index, error) for partition in topic.partitions],
    )


async def _trim_topic(context: RequestContext, topic: TopicToTrim) -> TrimmedTopic:
    if not context.is_authorized(Operation.DELETE, ResourceType.TOPIC, topic.name):
        return _failed_topic(topic, authorization_error(ResourceType.TOPIC, topic.name))
    partitions = await asyncio.gather(
        *(_trim(context, topic.name, partition) for partition in topic.partitions)
    )
    return TrimmedTopic(name=topic.name, partitions=partitions)


async def _trim(context: RequestContext, topic: str, asked: PartitionToTrim) -> TrimmedPartition:
    broker = context.broker
    try:
        partition = find_by_name(broker, topic, asked.index)
        if not partition.settings.has_delete_policy:
            raise PolicyViolationError(
                f"topic {topic!r} is compacted: its cleanup.policy is not delete"
            )
        offset = asked.offset
        if offset == HIGH_WATERMARK:
            offset = partition.high_watermark
        if not 0 <= offset <= partition.high_watermark:
            raise OffsetOutOfRangeError(f"{offset} is outside of 0 to {partition.high_watermark}")
        await broker.storage.retention.delete_records(partition, offset)
    except KafscaleError as error:
        return _failed(asked.index, error)
    broker.audit.changed(
        context, "records deleted", topic=topic, partition=asked.index, before_offset=offset
    )
    return TrimmedPartition(index=asked.index, low_watermark=partition.start_offset)


def _failed(index: int, error: KafscaleError) -> TrimmedPartition:
    return TrimmedPartition(index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code)
