"""DescribeTopicPartitions (75): topics and their partitions, page by page (KIP-966).

Version notes:
* v0: flexible from the start.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import UUID_ZERO, Boolean, Int16, Int32, Message, String, Uuid


class Cursor(Message):
    """The partition with which a page begins."""

    topic_name: String = ""
    partition_index: Int32 = 0


class TopicToDescribe(Message):
    name: String = ""


class DescribeTopicPartitionsRequest(Message):
    topics: list[TopicToDescribe] = []
    """Empty for all topics."""
    partition_limit: Int32 = 2000
    """How many partitions one page may hold."""
    cursor: Cursor | None = None
    """None for the first page."""


class DescribedPartition(Message):
    error_code: Int16 = 0
    index: Int32 = 0
    leader_id: Int32 = 0
    """-1 where no broker leads."""
    leader_epoch: Int32 = -1
    replicas: list[Int32] = []
    in_sync_replicas: list[Int32] = []
    eligible_leader_replicas: list[Int32] | None = None
    last_known_eligible_leader_replicas: list[Int32] | None = None
    offline_replicas: list[Int32] = []


class DescribedTopic(Message):
    error_code: Int16 = 0
    name: String | None = ""
    topic_id: Uuid = UUID_ZERO
    is_internal: Boolean = False
    partitions: list[DescribedPartition] = []
    authorized_operations: Int32 = -0x8000_0000
    """One bit per operation; the default means unknown."""


class DescribeTopicPartitionsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[DescribedTopic] = []
    next_cursor: Cursor | None = None
    """None where this was the last page."""


DESCRIBE_TOPIC_PARTITIONS = Api(
    75,
    "DescribeTopicPartitions",
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    0,
    flexible_since=0,
)
