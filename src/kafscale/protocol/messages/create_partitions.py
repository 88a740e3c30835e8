"""CreatePartitions (37): add partitions to topics, or only validate it (KIP-195).

Version notes:
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
* v3: THROTTLING_QUOTA_EXCEEDED may be returned (KIP-599).
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Message, String


class PartitionAssignment(Message):
    broker_ids: list[Int32] = []


class TopicToGrow(Message):
    name: String = ""
    partition_count: Int32 = 0
    """The total number of partitions."""
    assignments: list[PartitionAssignment] | None = []
    """One for each new partition; None lets the broker choose."""


class CreatePartitionsRequest(Message):
    topics: list[TopicToGrow] = []
    timeout_ms: Int32 = 0
    validate_only: Boolean = False


class GrownTopic(Message):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[GrownTopic] = []


CREATE_PARTITIONS = Api(
    37, "CreatePartitions", CreatePartitionsRequest, CreatePartitionsResponse, 3, flexible_since=2
)
