"""AlterPartitionReassignments (45): move partitions to other brokers, or cancel it (KIP-455).

Version notes:
* v0: flexible from the start.
* v1: the client may disallow another replication factor (KIP-860).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Message, String, since


class PartitionToReassign(Message):
    index: Int32 = 0
    replicas: list[Int32] | None = None
    """None cancels the reassignment in progress."""


class TopicToReassign(Message):
    name: String = ""
    partitions: list[PartitionToReassign] = []


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: Int32 = 60_000
    allow_replication_factor_change: Annotated[Boolean, since(1)] = True
    topics: list[TopicToReassign] = []


class ReassignedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class ReassignedTopic(Message):
    name: String = ""
    partitions: list[ReassignedPartition] = []


class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: Int32 = 0
    allow_replication_factor_change: Annotated[Boolean, since(1)] = True
    """As in the request."""
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[ReassignedTopic] = []


ALTER_PARTITION_REASSIGNMENTS = Api(
    45,
    "AlterPartitionReassignments",
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    1,
    flexible_since=0,
)
