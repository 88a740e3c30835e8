"""DeleteTopics (20): delete topics with their records.

Version notes:
* v1: throttle time.
* v2: a throttled response is sent first and the client muted afterwards (KIP-219).
* v3: TOPIC_DELETION_DISABLED may be returned.
* v4: flexible.
* v5: an error message per topic; THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599).
* v6: topics are identified by name or id (KIP-516).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    nullable,
    since,
    until,
)


class TopicToDelete(Message):
    name: String | None = None
    """None if the topic is identified by id."""
    topic_id: Uuid = UUID_ZERO


class DeleteTopicsRequest(Message):
    topics: Annotated[list[TopicToDelete], since(6)] = []
    topic_names: Annotated[list[String], until(5)] = []
    timeout_ms: Int32 = 0


class DeletedTopic(Message):
    name: Annotated[String | None, nullable(since=6)] = ""
    """None if no topic has the given id."""
    topic_id: Annotated[Uuid, since(6)] = UUID_ZERO
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5)] = None


class DeleteTopicsResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    topics: list[DeletedTopic] = []


DELETE_TOPICS = Api(
    20, "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse, 6, flexible_since=4
)
