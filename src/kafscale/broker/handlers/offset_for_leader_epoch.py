"""OffsetForLeaderEpoch: v0-4.

Behaviour:
* Where an epoch ends in this log, so that a reader finds out whether what it has read is still
  there. An epoch without records is answered with the one before it.
* A client that believes in a leader epoch that is not ours is refused: 74 older, 75 newer.
* Needs DESCRIBE on each topic, or CLUSTER_ACTION on the cluster, TOPIC_AUTHORIZATION_FAILED
  otherwise, whether it exists or not.
* Nobody sees past the high watermark, whoever asks: brokers do not follow each other.

Version notes:
* v1+: which epoch it is in the answer. v2+: the epoch that the client believes in.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.broker.shared.partition_lookup import check_leader_epoch, find_by_name
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
    sees_all = context.is_authorized(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, quiet=True)
    return OffsetForLeaderEpochResponse(
        topics=[
            _answer_topic(context, topic)
            if sees_all or context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
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
            EpochEndOfPartition(error_code=code, index=asked.index) for asked in topic.partitions
        ],
    )


def _answer_topic(context: RequestContext, topic: EpochsOfTopic) -> EpochEndsOfTopic:
    return EpochEndsOfTopic(
        name=topic.name,
        partitions=[_answer(context.broker, topic.name, each) for each in topic.partitions],
    )


def _answer(broker: Services, topic: str, asked: EpochOfPartition) -> EpochEndOfPartition:
    try:
        partition = find_by_name(broker, topic, asked.index)
        check_leader_epoch(partition, asked.current_leader_epoch)
    except KafscaleError as error:
        return EpochEndOfPartition(error_code=error.code, index=asked.index)
    found = partition.epochs.end_offset_for(asked.leader_epoch, partition.high_watermark)
    return EpochEndOfPartition(
        index=asked.index, leader_epoch=found.epoch, end_offset=found.end_offset
    )
