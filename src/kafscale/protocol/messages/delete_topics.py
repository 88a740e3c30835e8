"""DeleteTopics (20): delete topics with all that is in them.

Version notes:
* v1: throttle time.
* v2: an answer over quota is sent first and the client held back after it (KIP-219).
* v3: TOPIC_DELETION_DISABLED may be answered.
* v4: flexible.
* v5: an error message per topic; THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599).
* v6: topics go by their name or by their id (KIP-516).
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
    """None where the topic goes by its id."""
    topic_id: Uuid = UUID_ZERO


class DeleteTopicsRequest(Message):
    topics: Annotated[list[TopicToDelete], since(6)] = []
    topic_names: Annotated[list[String], until(5)] = []
    timeout_ms: Int32 = 0


class DeletedTopic(Message):
    name: Annotated[String | None, nullable(since=6)] = ""
    """None where an id was given that no topic has."""
    topic_id: Annotated[Uuid, since(6)] = UUID_ZERO
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(5)] = None


class DeleteTopicsResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    topics: list[DeletedTopic] = []


DELETE_TOPICS = Api(
    20, "DeleteTopics", DeleteTopicsRequest, DeleteTopicsResponse, 6, flexible_since=4
)
