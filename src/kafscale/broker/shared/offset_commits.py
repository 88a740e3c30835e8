"""What the handlers that commit offsets share: the checks of topics and partitions."""

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import (
    KafscaleError,
    OffsetMetadataTooLargeError,
    TopicAuthorizationError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.metadata.schema.model import Topic

PARTITION_ERRORS = frozenset(
    {UnknownTopicError.code, UnknownTopicIdError.code, TopicAuthorizationError.code}
)
"""The errors of partitions that take precedence over those of the group."""


def check_topic(
    context: RequestContext,
    topic: Topic | None,
    name: str,
    unknown: KafscaleError,
    *,
    quiet: bool = False,
) -> Topic:
    """Return the topic; raises `unknown` if it does not exist, or if the client may not read it.

    `name` is that in the request. `quiet` keeps a denial out of the audit log.
    """
    name = topic.name if topic else name
    # A topic that does not exist can be authorized by name only.
    if name and not context.is_authorized(Operation.READ, ResourceType.TOPIC, name, quiet=quiet):
        raise TopicAuthorizationError("not authorized to read the topic")
    if topic is None:
        raise unknown
    return topic


def check_partition(topic: Topic, index: int) -> None:
    if not 0 <= index < topic.partitions:
        raise UnknownTopicError(f"topic {topic.name!r} has no partition {index}")


def check_metadata(context: RequestContext, metadata: str | None) -> None:
    size_bytes = len((metadata or "").encode())
    if size_bytes > context.broker.config.offsets.metadata_bytes_max:
        raise OffsetMetadataTooLargeError(f"the offset metadata has {size_bytes} bytes")
