"""OffsetForLeaderEpoch: v0-4.

Behaviour:
* The end offset of a leader epoch in this log, so that a consumer can detect truncation. An epoch
  without records is answered with the one before it.
* A client with another current leader epoch is refused: error 74 if it is older, 75 if newer.
* Requires DESCRIBE on each topic, or CLUSTER_ACTION on the cluster, else
  TOPIC_AUTHORIZATION_FAILED, whether it exists or not.
* End offsets never exceed the high watermark, for replicas neither: brokers do not replicate.

Version notes:
* v1+: the leader epoch in the response. v2+: the client's current leader epoch.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.broker.shared.partition_lookup import check_leader_epoch, find_readable_by_name
from kafscale.errors import KafscaleError, TopicAuthorizationError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.offset_for_leader_epoch import (
    EpochEndOfPartition,
    EpochEndsOfTopic,
    EpochOfPartition,
    EpochsOfTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)


def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    can_describe_all = context.is_authorized(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, quiet=True
    )
    return OffsetForLeaderEpochResponse(
        topics=[
            _topic_result(context, topic)
            if can_describe_all
            or context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
            else _failed(topic, TopicAuthorizationError.code)
            for topic in request.topics
        ]
    )


def error_response(
    _context: RequestContext, request: OffsetForLeaderEpochRequest, error: KafscaleError
) -> OffsetForLeaderEpochResponse:
    """The same error for every partition."""
    return OffsetForLeaderEpochResponse(
        topics=[_failed(topic, error.code) for topic in request.topics]
    )


def _failed(topic: EpochsOfTopic, code: int) -> EpochEndsOfTopic:
    return EpochEndsOfTopic(
        name=topic.name,
        partitions=[
            EpochEndOfPartition(error_code=code, index=requested.index)
            for requested in topic.partitions
        ],
    )


def _topic_result(context: RequestContext, topic: EpochsOfTopic) -> EpochEndsOfTopic:
    return EpochEndsOfTopic(
        name=topic.name,
        partitions=[
            _partition_result(context.broker, topic.name, each) for each in topic.partitions
        ],
    )


def _partition_result(
    broker: Services, topic: str, requested: EpochOfPartition
) -> EpochEndOfPartition:
    try:
        log = find_readable_by_name(broker, topic, requested.index)
        check_leader_epoch(log, requested.current_leader_epoch)
    except KafscaleError as error:
        return EpochEndOfPartition(error_code=error.code, index=requested.index)
    epoch_end = log.epochs.end_offset_for(requested.leader_epoch, log.high_watermark)
    return EpochEndOfPartition(
        index=requested.index, leader_epoch=epoch_end.epoch, end_offset=epoch_end.end_offset
    )
