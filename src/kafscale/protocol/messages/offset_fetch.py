"""OffsetFetch (9): fetch the committed offsets of groups.

Version notes:
* v0: offsets in ZooKeeper; v1: the same, in Kafka.
* v2: null topics means all topics of the group; an error for the whole response (KIP-88).
* v3: throttle time in the response.
* v5: leader epoch of the committed offset (KIP-320).
* v6: flexible.
* v7: stable offsets only: none that an open transaction may change (KIP-447).
* v8: any number of groups; top-level fields move into each group (KIP-709).
* v9: member and epoch, for groups of the consumer protocol (KIP-848).
* v10: topics are identified by id instead of name (KIP-848).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Uuid,
    nullable,
    since,
    until,
)


class TopicToFetch(Message):
    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: list[Int32] = []


class GroupToFetch(Message):
    group_id: String = ""
    member_id: Annotated[String | None, since(9)] = None
    member_epoch: Annotated[Int32, since(9)] = -1
    """-1 when the reader is no member of a group of the consumer protocol."""
    topics: list[TopicToFetch] | None = []
    """Null for every topic that the group has committed."""


class OffsetFetchRequest(Message):
    group_id: Annotated[String, until(7)] = ""
    topics: Annotated[list[TopicToFetch] | None, until(7), nullable(since=2)] = []
    """Null for every topic that the group has committed."""
    groups: Annotated[list[GroupToFetch], since(8)] = []
    require_stable: Annotated[Boolean, since(7)] = False


class FetchedPartition(Message):
    index: Int32 = 0
    committed_offset: Int64 = 0
    """-1 where the group has committed none."""
    leader_epoch: Annotated[Int32, since(5)] = -1
    """-1 if the commit did not set it."""
    metadata: String | None = ""
    error_code: Int16 = 0


class FetchedTopic(Message):
    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: list[FetchedPartition] = []


class FetchedGroup(Message):
    group_id: String = ""
    topics: list[FetchedTopic] = []
    error_code: Int16 = 0


class OffsetFetchResponse(Message):
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: Annotated[list[FetchedTopic], until(7)] = []
    error_code: Annotated[Int16, since(2, until=7)] = 0
    groups: Annotated[list[FetchedGroup], since(8)] = []


OFFSET_FETCH = Api(9, "OffsetFetch", OffsetFetchRequest, OffsetFetchResponse, 10, flexible_since=6)
