"""Metadata: v0-13.

Behaviour:
* The brokers and the requested topics, or all of them. A partition has one replica, its leader, or
  those that were requested (`metadata.cluster.replicas`). A partition without a leader is
  LEADER_NOT_AVAILABLE for a moment.
* A missing topic is auto-created, if the request and the broker's settings both allow it.
* Requires DESCRIBE on each requested topic, and CREATE on it or on the cluster to auto-create it,
  else TOPIC_AUTHORIZATION_FAILED, whether it exists or not. A request for all topics returns those
  that the client may DESCRIBE.
* This broker's address is the advertised one, or else the one that the client connected to.

Version notes:
* v0: an empty list means all topics. From v1 on null means all, and an empty list none.
* v4+: the client may disallow auto-creation.
* v8+: authorized operations of topics; v8-10: and of the cluster.
* v10+: topic ids in the response; v12+: requests by topic id, INVALID_REQUEST before.
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
from kafscale.metadata.cluster.replicas import partition_replicas
from kafscale.metadata.schema.model import NO_BROKER, Topic
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
"""Error codes by the name or id that the client has sent."""


def handle(
    context: RequestContext, request: MetadataRequest
) -> MetadataResponse | Awaitable[MetadataResponse]:
    if _requests_all(context, request):
        existing = context.broker.topic_store.visible.values()
        visible = [
            topic for topic in existing if context.can_describe(ResourceType.TOPIC, topic.name)
        ]
        return _response(
            context, request, [_described(context, request, topic) for topic in visible]
        )
    if context.version < IDS_SINCE and any(
        requested.name is None for requested in request.topics or ()
    ):
        raise InvalidRequestError(
            f"version {context.version} identifies topics by name, but a name is null"
        )
    errors: _Errors = {} if context.broker.authorizer is None else _denied(context, request)
    names = _missing(context, request, errors)
    if names:
        return _create_and_respond(context, request, names, errors)
    topics = [_find(context, request, requested, errors) for requested in request.topics or ()]
    return _response(context, request, topics)


def error_response(
    context: RequestContext, request: MetadataRequest, error: KafscaleError
) -> MetadataResponse | None:
    if _requests_all(context, request) and context.version < ERROR_SINCE:
        return None  # A response without topics would mean that there are none.
    return MetadataResponse(
        topics=[
            TopicMetadata(
                error_code=error.code, name=requested.name or "", topic_id=requested.topic_id
            )
            for requested in request.topics or ()
        ],
        error_code=error.code,
    )


async def _create_and_respond(
    context: RequestContext, request: MetadataRequest, names: list[str], errors: _Errors
) -> MetadataResponse:
    broker = context.broker
    for name in names:
        try:
            await topic_admission.auto_create(
                context, name, broker.config.network.request_timeout_ms
            )
        except ThrottledError:
            continue  # The topic stays unknown, as in Kafka, so that the client retries.
        except KafscaleError as error:
            errors[name] = error.code
    topics = [_find(context, request, requested, errors) for requested in request.topics or ()]
    return _response(context, request, topics)


def _response(
    context: RequestContext, request: MetadataRequest, topics: list[TopicMetadata]
) -> MetadataResponse:
    operations = authorization.OPERATIONS_NOT_REQUESTED
    if request.include_cluster_authorized_operations:
        operations = authorization.authorized_cluster_operations(context)
    return MetadataResponse(
        brokers=[
            Broker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes(context)
        ],
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.cluster.controller_id,
        topics=topics,
        cluster_authorized_operations=operations,
    )


def _requests_all(context: RequestContext, request: MetadataRequest) -> bool:
    return request.topics is None or (context.version == 0 and not request.topics)


def _denied(context: RequestContext, request: MetadataRequest) -> _Errors:
    """The requested topics that the client may not describe."""
    topic_store = context.broker.topic_store
    errors: _Errors = {}
    for requested in request.topics or ():
        known = topic_store.find_by_id(requested.topic_id) if requested.name is None else None
        name = known.name if known else requested.name
        if name and not context.is_authorized(Operation.DESCRIBE, ResourceType.TOPIC, name):
            errors[_key(requested)] = TopicAuthorizationError.code
    return errors


def _key(requested: TopicToDescribe) -> str | bytes:
    return requested.topic_id if requested.name is None else requested.name


def _missing(context: RequestContext, request: MetadataRequest, errors: _Errors) -> list[str]:
    """The topics to auto-create first; those that the client may not create get an error."""
    broker = context.broker
    if not request.allow_auto_topic_creation or not broker.config.topics.auto_create:
        return []
    names = dict.fromkeys(requested.name for requested in request.topics or () if requested.name)
    missing = [
        name for name in names if name not in broker.topic_store.visible and name not in errors
    ]
    allowed = topic_admission.authorized_to_create(context, missing)
    errors.update(dict.fromkeys(set(missing) - allowed, TopicAuthorizationError.code))
    return [name for name in missing if name in allowed]


def _find(
    context: RequestContext, request: MetadataRequest, requested: TopicToDescribe, errors: _Errors
) -> TopicMetadata:
    topic_store = context.broker.topic_store
    if requested.name is None:
        topic = topic_store.find_by_id(requested.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = topic_store.find(requested.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    code = errors.get(_key(requested), 0 if topic else unknown)
    if topic is None or code:
        return TopicMetadata(error_code=code, name=requested.name, topic_id=requested.topic_id)
    return _described(context, request, topic)


def _described(context: RequestContext, request: MetadataRequest, topic: Topic) -> TopicMetadata:
    operations = authorization.OPERATIONS_NOT_REQUESTED
    if request.include_topic_authorized_operations:
        operations = authorization.authorized_operations(context, ResourceType.TOPIC, topic.name)
    return TopicMetadata(
        name=topic.name,
        topic_id=topic.id,
        is_internal=context.broker.topic_store.is_internal(topic.name),
        partitions=[_partition(context, topic, index) for index in range(topic.partitions)],
        authorized_operations=operations,
    )


def _partition(context: RequestContext, topic: Topic, index: int) -> PartitionMetadata:
    current = partition_replicas(context.broker.cluster, topic, index)
    has_leader = current.leader_id != NO_BROKER
    return PartitionMetadata(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        index=index,
        leader_id=current.leader_id,
        leader_epoch=current.leader_epoch,
        replicas=list(current.replicas),
        in_sync_replicas=list(current.in_sync),
        offline_replicas=list(current.offline),
    )
