"""OffsetCommit (8): commit the offsets of a group.

Version notes:
* v0: for ZooKeeper, without membership.
* v1: generation and member; a timestamp per partition, which v2 drops again.
* v2: a retention time for the whole request, which v5 drops again (KIP-211).
* v3: throttle time in the response.
* v6: leader epoch of the committed offset (KIP-320).
* v7: static members name their group instance (KIP-345).
* v8: flexible.
* v9: also for groups of the consumer protocol; the response may then be STALE_MEMBER_EPOCH, and for
  either protocol GROUP_ID_NOT_FOUND (KIP-848).
* v10: topics are identified by id instead of name (KIP-848).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Uuid,
    since,
    until,
)


class PartitionToCommit(Message):
    index: Int32 = 0
    committed_offset: Int64 = 0
    leader_epoch: Annotated[Int32, since(6)] = -1
    """The epoch of the last record that was read, -1 when the client does not know it."""
    commit_time_ms: Annotated[Int64, since(1, until=1)] = -1
    """-1 for the time at which the broker gets it."""
    metadata: String | None = ""


class TopicToCommit(Message):
    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: list[PartitionToCommit] = []


class OffsetCommitRequest(Message):
    group_id: String = ""
    generation_id_or_member_epoch: Annotated[Int32, since(1)] = -1
    """The generation in a classic group, the member's epoch in a consumer group; -1 when the client
    assigns partitions to itself and belongs to neither."""
    member_id: Annotated[String, since(1)] = ""
    group_instance_id: Annotated[String | None, since(7)] = None
    retention_time_ms: Annotated[Int64, since(2, until=4)] = -1
    """-1 for the broker's default."""
    topics: list[TopicToCommit] = []


class CommittedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0


class CommittedTopic(Message):
    name: Annotated[String, until(9)] = ""
    topic_id: Annotated[Uuid, since(10)] = UUID_ZERO
    partitions: list[CommittedPartition] = []


class OffsetCommitResponse(Message):
    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: list[CommittedTopic] = []


OFFSET_COMMIT = Api(
    8, "OffsetCommit", OffsetCommitRequest, OffsetCommitResponse, 10, flexible_since=8
)
