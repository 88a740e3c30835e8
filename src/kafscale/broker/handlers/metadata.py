"""Metadata: v0-13.

Behaviour:
* The brokers and the topics asked for, or all of them; each partition has one replica, its leader.
  One whose leader is gone, or not chosen yet, is LEADER_NOT_AVAILABLE for a moment.
* A topic that does not exist is created, if the request and the broker's settings both allow it.
* This broker's address is the advertised one, or else the one at which the client has come.

Version notes:
* v0: no topics named means all. From v1 on null means all, and an empty list none.
* v4+: the client may forbid that topics are created.
* v8+: authorized operations, which are not kept while there is no authorization.
* v10+: topic ids in the answer; v12+: topics may be asked for by id.
"""

from collections.abc import Awaitable

from kafscale.broker.addresses import nodes
from kafscale.broker.context import RequestContext
from kafscale.broker.operations import NOT_ASKED, ON_CLUSTER, ON_TOPIC
from kafscale.errors import KafscaleError
from kafscale.metadata.cluster_view import NOBODY
from kafscale.metadata.model import Topic
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import (
    Broker,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicToDescribe,
)

ERROR_SINCE = 13


def handle(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    broker = context.broker
    names = _missing(context, request)
    if names:
        return _create_and_answer(context, request, names)
    if _wants_all(context, request):
        topics = [_described(context, request, topic) for topic in broker.catalog.topics.values()]
    else:
        topics = [_find(context, request, asked, {}) for asked in request.topics or ()]
    return _answer(context, request, topics)


def refuse(
    context: RequestContext, request: MetadataRequest, error: KafscaleError
) -> MetadataResponse | None:
    if _wants_all(context, request) and context.version < ERROR_SINCE:
        return None  # An answer without topics would read as: there are none.
    return MetadataResponse(
        topics=[
            TopicMetadata(error_code=error.code, name=asked.name or "", topic_id=asked.topic_id)
            for asked in request.topics or ()
        ],
        error_code=error.code,
    )


async def _create_and_answer(
    context: RequestContext, request: MetadataRequest, names: list[str]
) -> MetadataResponse:
    broker = context.broker
    errors: dict[str, int] = {}
    for name in names:
        try:
            await broker.topics.create_if_missing(
                name,
                broker.config.topics.auto_create_partitions,
                broker.config.network.request_timeout_ms,
            )
        except KafscaleError as error:
            errors[name] = error.code
    topics = [_find(context, request, asked, errors) for asked in request.topics or ()]
    return _answer(context, request, topics)


def _answer(
    context: RequestContext, request: MetadataRequest, topics: list[TopicMetadata]
) -> MetadataResponse:
    asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=[
            Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes(context)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=ON_CLUSTER if asked else NOT_ASKED,
    )


def _wants_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def _missing(context: RequestContext, request: MetadataRequest) -> list[str]:
    """The topics that are to be created first."""
    broker = context.broker
    if not request.allow_auto_topic_creation or not broker.config.topics.auto_create:
        return []
    names = dict.fromkeys(asked.name for asked in request.topics or () if asked.name)
    return [name for name in names if name not in broker.catalog.topics]


def _find(
    context: RequestContext,
    request: MetadataRequest,
    asked: TopicToDescribe,
    errors: dict[str, int],
) -> TopicMetadata:
    catalog = context.broker.catalog
    if asked.name is None:
        topic = catalog.by_id.get(asked.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = catalog.get(asked.name)
        unknown = ErrorCode.of(errors.get(asked.name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if topic is None:
        return TopicMetadata(error_code=unknown, name=asked.name, topic_id=asked.topic_id)
    return _described(context, request, topic)


def _described(context: RequestContext, request: MetadataRequest, topic: Topic) -> TopicMetadata:
    asked = request.include_topic_authorized_operations
    return TopicMetadata(
        name=topic.name,
        topic_id=topic.id,
        partitions=[_partition(context, topic.name, index) for index in range(topic.partitions)],
        authorized_operations=ON_TOPIC if asked else NOT_ASKED,
    )


def _partition(context: RequestContext, topic: str, index: int) -> PartitionMetadata:
    leader_id, leader_epoch = context.broker.cluster.leader(topic, index)
    if leader_id == NOBODY:
        return PartitionMetadata(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE, index=index, leader_id=NOBODY,
            leader_epoch=leader_epoch, replicas=[], in_sync_replicas=[],
        )  # fmt: skip
    return PartitionMetadata(
        index=index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replicas=[leader_id],
        in_sync_replicas=[leader_id],
    )
