"""DeleteRecords: v0-2.

Behaviour:
* An offset becomes the log start offset, and is stored before the response; records below it are no
  longer served, and retention deletes their objects later.
* A topic that is only compacted keeps the newest record of each key, so that nothing can be deleted
  from it: POLICY_VIOLATION.
* -1 is the high watermark, which deletes everything. An offset below the log start offset changes
  nothing and is no error; one above the high watermark is OFFSET_OUT_OF_RANGE.
* Each partition succeeds or fails on its own.
* Requires DELETE on each topic, else TOPIC_AUTHORIZATION_FAILED, whether it exists or not.

Version notes: all versions behave alike.
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


async def _trim(
    context: RequestContext, topic: str, requested: PartitionToTrim
) -> TrimmedPartition:
    broker = context.broker
    try:
        log = find_by_name(broker, topic, requested.index)
        if not log.settings.has_delete_policy:
            raise PolicyViolationError(
                f"the cleanup.policy of topic {topic!r} does not include delete"
            )
        offset = requested.offset
        if offset == HIGH_WATERMARK:
            offset = log.high_watermark
        if not 0 <= offset <= log.high_watermark:
            raise OffsetOutOfRangeError(
                f"offset {offset} is not in the range 0 to {log.high_watermark}"
            )
        await broker.storage.retention.delete_records(log, offset)
    except KafscaleError as error:
        return _failed(requested.index, error)
    broker.audit.changed(
        context, "records deleted", topic=topic, partition=requested.index, before_offset=offset
    )
    return TrimmedPartition(index=requested.index, low_watermark=log.start_offset)


def _failed(index: int, error: KafscaleError) -> TrimmedPartition:
    return TrimmedPartition(index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code)
