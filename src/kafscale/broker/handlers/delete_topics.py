"""DeleteTopics: v0-6.

Behaviour:
* Topics are deleted concurrently; each succeeds or fails on its own. When the response is sent, a
  topic is no longer served.
* Its objects are deleted in the background, and its name can be reused once they are gone. The
  response waits for that, for the client's timeout but at most `WAIT_MS_MAX`, so that a topic can
  usually be recreated at once; a deletion that takes longer is no error.
* An internal topic shows what the metadata store holds and cannot be deleted:
  INVALID_TOPIC_EXCEPTION. Kafka deletes it, with all committed offsets.
* A topic that is named twice, by name or by id, is refused, and answered once.
* Requires DELETE on each topic or on the cluster, else TOPIC_AUTHORIZATION_FAILED. A client that
  may not even DESCRIBE a topic gets the same error, whether the topic exists or not.
* Partitions are charged to the client's quota; if it is exceeded, THROTTLING_QUOTA_EXCEEDED (v5+),
  or a throttle time in the response (KIP-599).

Version notes:
* v5+: an error message.
* v6+: topics are identified by name or by id.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from kafscale.broker.configs.resources import check_not_internal
from kafscale.broker.requests import slices
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.services import Services
from kafscale.broker.shared import topic_admission
from kafscale.errors import (
    InvalidRequestError,
    KafscaleError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.messages.delete_topics import (
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicToDelete,
)

WAIT_MS_MAX: Final = 5_000
POLL_SECONDS: Final = 0.01


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    broker = context.broker
    topic_admission.check_admin_allowed(broker)
    requested, refused = _without_duplicates(_requested(context, request))
    topics = await slices.each(
        context, requested, lambda part: [_find(context, topic) for topic in part]
    )
    counts = Counter(topic.id for topic in topics if isinstance(topic, Topic))
    results = await slices.each(
        context,
        list(zip(requested, topics, strict=True)),
        lambda part: asyncio.gather(
            *(
                _delete(context, topic, result, counts)
                for topic, result in part
                if not _is_answered_by_name(topic, result, counts)
            )
        ),
    )
    await _wait_for_deletion(broker, counts.keys(), min(request.timeout_ms, WAIT_MS_MAX))
    return DeleteTopicsResponse(topics=[*refused, *results])


def error_response(
    context: RequestContext, request: DeleteTopicsRequest, error: KafscaleError
) -> DeleteTopicsResponse:
    """The same error for every topic."""
    return DeleteTopicsResponse(
        topics=[_failed(topic, error) for topic in _requested(context, request)]
    )


def _requested(context: RequestContext, request: DeleteTopicsRequest) -> Sequence[TopicToDelete]:
    if context.version >= 6:
        return request.topics
    return [TopicToDelete(name=name) for name in request.topic_names]


def _without_duplicates(
    requested: Sequence[TopicToDelete],
) -> tuple[list[TopicToDelete], list[DeletedTopic]]:
    """The topics that are named once; and the errors of the others, one for each."""
    counts = Counter(map(_identity, requested))
    refused = [
        _failed(TopicToDelete(name, topic_id), InvalidRequestError(f"Duplicate topic {kind}."))
        for (name, topic_id), count in counts.items()
        if count > 1 and (kind := _identified_by(name, topic_id))
    ]
    once = [
        topic
        for topic in requested
        if counts[_identity(topic)] == 1 or not _identified_by(*_identity(topic))
    ]
    return once, refused


def _identity(requested: TopicToDelete) -> tuple[str | None, bytes]:
    return requested.name, requested.topic_id


def _identified_by(name: str | None, topic_id: bytes) -> str:
    """How a topic is identified; empty for neither or both, which is an error of its own."""
    if (name is None) == (topic_id == UUID_ZERO):
        return ""
    return "id" if name is None else "name"


def _is_answered_by_name(
    requested: TopicToDelete, topic: Topic | KafscaleError, counts: Counter[bytes]
) -> bool:
    """Whether this is the id of a topic that the request names too; one of them is answered."""
    return isinstance(topic, Topic) and requested.name is None and counts[topic.id] > 1


def _find(context: RequestContext, requested: TopicToDelete) -> Topic | KafscaleError:
    """The requested topic, or an error; also if the client may not delete it."""
    topic = _lookup(context, requested)
    if context.is_authorized(Operation.DELETE, ResourceType.CLUSTER, quiet=True):
        return topic
    # A topic that does not exist can be authorized by name only.
    needed = [Operation.DESCRIBE] if requested.name is not None else []
    if isinstance(topic, Topic):
        needed.append(Operation.DELETE)
    name = topic.name if isinstance(topic, Topic) else requested.name or ""
    if not all(context.is_authorized(operation, ResourceType.TOPIC, name) for operation in needed):
        return authorization_error(ResourceType.TOPIC, requested.name or requested.topic_id.hex())
    return topic


def _lookup(context: RequestContext, requested: TopicToDelete) -> Topic | KafscaleError:
    broker = context.broker
    by_name, by_id = requested.name is not None, requested.topic_id != UUID_ZERO
    if by_name and by_id:
        return InvalidRequestError("You may not specify both topic name and topic id.")
    if requested.name is not None:
        return broker.topic_store.find(requested.name) or UnknownTopicError()
    if by_id:
        return broker.topic_store.find_by_id(requested.topic_id) or UnknownTopicIdError()
    return InvalidRequestError("Neither topic name nor id were specified.")


async def _delete(
    context: RequestContext,
    requested: TopicToDelete,
    topic: Topic | KafscaleError,
    counts: Counter[bytes],
) -> DeletedTopic:
    if isinstance(topic, KafscaleError):
        return _failed(requested, topic)
    if counts[topic.id] > 1:
        return _failed(
            TopicToDelete(topic.name, topic.id),
            InvalidRequestError("The provided topic name maps to an ID that was already supplied."),
        )
    try:
        check_not_internal(context.broker, topic.name)
        context.broker.quotas.charge_mutation(context, topic.partitions)
        # The cached topic may be outdated, and another topic may have its name now.
        topic_id = topic.id if requested.name is None else None
        deleted = await context.broker.topic_store.delete(topic.name, topic_id)
    except KafscaleError as error:
        return _failed(requested, error)
    context.broker.audit.changed(context, "topic deleted", topic=deleted.name)
    return DeletedTopic(name=deleted.name, topic_id=deleted.id)


async def _wait_for_deletion(broker: Services, topic_ids: Iterable[bytes], wait_ms: int) -> None:
    """Wait until the names can be reused, or for `wait_ms`."""
    pending = set(topic_ids)
    with suppress(TimeoutError):
        async with asyncio.timeout(max(wait_ms, 0) / 1000):
            # The topic store has no event for finished deletions: poll.
            while any(topic.id in pending for topic in broker.topic_store.deletions.values()):  # noqa: ASYNC110
                await asyncio.sleep(POLL_SECONDS)


def _failed(requested: TopicToDelete, error: KafscaleError) -> DeletedTopic:
    return DeletedTopic(
        name=requested.name,
        topic_id=requested.topic_id,
        error_code=error.code,
        error_message=str(error),
    )
