"""Metadata: v0-13.

Behaviour:
* The brokers and the topics asked for, or all of them; each partition has one replica, its leader.
  One whose leader is gone, or not chosen yet, is LEADER_NOT_AVAILABLE for a moment.
* A topic that does not exist is created, if the request and the broker's settings both allow it.
* Needs DESCRIBE on each topic that is named, and CREATE on it or on the cluster where it is to be
  created, TOPIC_AUTHORIZATION_FAILED otherwise, whether it exists or not. Of all topics, those are
  told that the client may see.
* This broker's address is the advertised one, or else the one at which the client has come.

Version notes:
* v0: no topics named means all. From v1 on null means all, and an empty list none.
* v4+: the client may forbid that topics are created.
* v8+: what the client may do to topics; v8-10: and to the cluster.
* v10+: topic ids in the answer; v12+: topics may be asked for by id, INVALID_REQUEST before.
"""

from collections.abc import Awaitable

from kafscale.broker.network.advertised import nodes
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security import authorization
from kafscale.broker.shared import topic_admission
from kafscale.errors import (
    InvalidRequestError,
    KafscaleError,
    ThrottledError,
    TopicAuthorizationError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.cluster.cluster_cache import NO_BROKER
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.metadata import (
    Broker,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
    TopicToDescribe,
)

IDS_SINCE = 12
ERROR_SINCE = 13

_Errors = dict[str | bytes, int]
"""What is wrong with topics, by what the client has called them: name or id."""


def handle(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if _wants_all(context, request):
        known = context.broker.catalog.topics.values()
        seen = [topic for topic in known if context.can_describe(ResourceType.TOPIC, topic.name)]
        return _answer(context, request, [_described(context, request, topic) for topic in seen])
    if context.version < IDS_SINCE and any(asked.name is None for asked in request.topics or ()):
        raise InvalidRequestError(f"topics go by their names in version {context.version}")
    errors: _Errors = {} if context.broker.authorizer is None else _denied(context, request)
    names = _missing(context, request, errors)
    if names:
        return _create_and_answer(context, request, names, errors)
    topics = [_find(context, request, asked, errors) for asked in request.topics or ()]
    return _answer(context, request, topics)


def error_response(
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
    context: RequestContext, request: MetadataRequest, names: list[str], errors: _Errors
) -> MetadataResponse:
    broker = context.broker
    for name in names:
        try:
            await topic_admission.auto_create(
                context, name, broker.config.network.request_timeout_ms
            )
        except ThrottledError:
            continue  # It is not known yet, as in Kafka, so that the client asks again.
        except KafscaleError as error:
            errors[name] = error.code
    topics = [_find(context, request, asked, errors) for asked in request.topics or ()]
    return _answer(context, request, topics)


def _answer(
    context: RequestContext, request: MetadataRequest, topics: list[TopicMetadata]
) -> MetadataResponse:
    allowed = authorization.OPERATIONS_NOT_REQUESTED
    if request.include_cluster_authorized_operations:
        allowed = authorization.authorized_cluster_operations(context)
    return MetadataResponse(
        brokers=[
            Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes(context)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=allowed,
    )


def _wants_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def _denied(context: RequestContext, request: MetadataRequest) -> _Errors:
    """The topics that are named and that the client may not see."""
    catalog = context.broker.catalog
    errors: _Errors = {}
    for asked in request.topics or ():
        known = catalog.by_id.get(asked.topic_id) if asked.name is None else None
        name = known.name if known else asked.name
        if name and not context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            errors[_named(asked)] = TopicAuthorizationError.code
    return errors


def _named(asked: TopicToDescribe) -> str | bytes:
    return asked.topic_id if asked.name is None else asked.name


def _missing(context: RequestContext, request: MetadataRequest, errors: _Errors) -> list[str]:
    """The topics that are to be created first; that the client may not create one is an error."""
    broker = context.broker
    if not request.allow_auto_topic_creation or not broker.config.topics.auto_create:
        return []
    names = dict.fromkeys(asked.name for asked in request.topics or () if asked.name)
    missing = [name for name in names if name not in broker.catalog.topics and name not in errors]
    allowed = topic_admission.authorized_to_create(context, missing)
    errors.update(dict.fromkeys(set(missing) - allowed, TopicAuthorizationError.code))
    return [name for name in missing if name in allowed]


def _find(
    context: RequestContext, request: MetadataRequest, asked: TopicToDescribe, errors: _Errors
) -> TopicMetadata:
    catalog = context.broker.catalog
    if asked.name is None:
        topic = catalog.by_id.get(asked.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = catalog.get(asked.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code = errors.get(_named(asked), 0 if topic else unknown)
    if topic is None or code:
        return TopicMetadata(error_code=code, name=asked.name, topic_id=asked.topic_id)
    return _described(context, request, topic)


def _described(context: RequestContext, request: MetadataRequest, topic: Topic) -> TopicMetadata:
    allowed = authorization.OPERATIONS_NOT_REQUESTED
    if request.include_topic_authorized_operations:
        allowed = authorization.authorized_operations(context, ResourceType.TOPIC, topic.name)
    return TopicMetadata(
        name=topic.name,
        topic_id=topic.id,
        partitions=[_partition(context, topic.name, index) for index in range(topic.partitions)],
        authorized_operations=allowed,
    )


def _partition(context: RequestContext, topic: str, index: int) -> PartitionMetadata:
    leader_id, leader_epoch = context.broker.cluster.leader(topic, index)
    if leader_id == NO_BROKER:
        return PartitionMetadata(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE,
            index=index,
            leader_id=NO_BROKER,
            leader_epoch=leader_epoch,
            replicas=[],
            in_sync_replicas=[],
        )
    return PartitionMetadata(
        index=index,
        leader_id=leader_id,
        leader_epoch=leader_epoch,
        replicas=[leader_id],
        in_sync_replicas=[leader_id],
    )
