"""ListPartitionReassignments (46): ongoing reassignments of partitions (KIP-455).

Version notes:
* v0: flexible from the start.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String


class TopicToList(Message):
    name: String = ""
    partitions: list[Int32] = []


class ListPartitionReassignmentsRequest(Message):
    timeout_ms: Int32 = 60_000
    topics: list[TopicToList] | None = None
    """None for all topics."""


class PartitionReassignment(Message):
    index: Int32 = 0
    replicas: list[Int32] = []
    """All current replicas, including those that are being added or removed."""
    adding_replicas: list[Int32] = []
    removing_replicas: list[Int32] = []


class TopicReassignment(Message):
    name: String = ""
    partitions: list[PartitionReassignment] = []


class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    topics: list[TopicReassignment] = []


LIST_PARTITION_REASSIGNMENTS = Api(
    46,
    "ListPartitionReassignments",
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    0,
    flexible_since=0,
)
