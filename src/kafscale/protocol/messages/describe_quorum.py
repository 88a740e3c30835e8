"""DescribeQuorum (55): the state of the controllers' metadata log (KIP-595).

Version notes:
* v0: flexible from the start.
* v1: when each replica fetched last, and up to when it had caught up (KIP-836).
* v2: error messages, directory ids, and the listeners of the voters (KIP-853).
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
    UInt16,
    Uuid,
    since,
)


class PartitionToDescribe(Message):
    index: Int32 = 0


class TopicToDescribe(Message):
    name: String = ""
    partitions: list[PartitionToDescribe] = []


class DescribeQuorumRequest(Message):
    topics: list[TopicToDescribe] = []


class ReplicaState(Message):
    replica_id: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(2)] = UUID_ZERO
    log_end_offset: Int64 = 0
    """-1 if unknown."""
    last_fetch_timestamp: Annotated[Int64, since(1)] = -1
    """-1 if unknown, and for the leader."""
    last_caught_up_timestamp: Annotated[Int64, since(1)] = -1
    """The present time for the leader; -1 if unknown."""


class QuorumPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2)] = ""
    leader_id: Int32 = 0
    """-1 if unknown."""
    leader_epoch: Int32 = 0
    high_watermark: Int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class QuorumTopic(Message):
    name: String = ""
    partitions: list[QuorumPartition] = []


class QuorumListener(Message):
    name: String = ""
    host: String = ""
    port: UInt16 = 0


class QuorumNode(Message):
    node_id: Int32 = 0
    listeners: list[QuorumListener] = []


class DescribeQuorumResponse(Message):
    error_code: Int16 = 0
    error_message: Annotated[String | None, since(2)] = ""
    topics: list[QuorumTopic] = []
    nodes: Annotated[list[QuorumNode], since(2)] = []


DESCRIBE_QUORUM = Api(
    55, "DescribeQuorum", DescribeQuorumRequest, DescribeQuorumResponse, 2, flexible_since=0
)
