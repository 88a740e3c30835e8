"""CreateTopics (19): create topics, or only validate the request.

Version notes:
* v1: validation without creation; an error message per topic.
* v2: throttle time.
* v3: a throttled response is sent first and the client muted afterwards (KIP-219).
* v4: -1 takes the broker's default of partitions and replicas (KIP-464); before, it was allowed
  beside assignments only.
* v5: flexible; the new topic's partitions, replicas and configuration in the response (KIP-525).
* v6: THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599).
* v7: the new topic's id in the response (KIP-516).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    since,
    tag,
)


class PartitionAssignment(Message):
    index: Int32 = 0
    broker_ids: list[Int32] = []


class TopicConfig(Message):
    name: String = ""
    value: String | None = ""


class TopicToCreate(Message):
    name: String = ""
    partition_count: Int32 = 0
    """-1 beside assignments, or for the broker's default."""
    replication_factor: Int16 = 0
    """-1 beside assignments, or for the broker's default."""
    assignments: list[PartitionAssignment] = []
    """Empty lets the broker choose."""
    configs: list[TopicConfig] = []


class CreateTopicsRequest(Message):
    topics: list[TopicToCreate] = []
    timeout_ms: Int32 = 60_000
    validate_only: Annotated[Boolean, since(1)] = False


class CreatedTopicConfig(Message):
    name: String = ""
    value: String | None = ""
    is_read_only: Boolean = False
    source: Int8 = -1
    """1: the topic's own, 2 to 4: the brokers', 5: the default; -1 if unknown."""
    is_sensitive: Boolean = False


class CreatedTopic(Message):
    name: String = ""
    topic_id: Annotated[Uuid, since(7)] = UUID_ZERO
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(1)] = ""
    config_error_code: Annotated[Int16, tag(0, since=5)] = 0
    """Why `configs` is None, such as a client that may not see them."""
    partition_count: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[list[CreatedTopicConfig] | None, since(5)] = []


class CreateTopicsResponse(Message):
    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: list[CreatedTopic] = []


CREATE_TOPICS = Api(
    19, "CreateTopics", CreateTopicsRequest, CreateTopicsResponse, 7, flexible_since=5
)
