"""DescribeProducers (61): active producers, to find hanging transactions (KIP-664).

Version notes:
* v0: flexible from the start.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String


class TopicToDescribe(Message):
    name: String = ""
    partitions: list[Int32] = []


class DescribeProducersRequest(Message):
    topics: list[TopicToDescribe] = []


class ActiveProducer(Message):
    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp_ms: Int64 = -1
    coordinator_epoch: Int32 = 0
    transaction_start_offset: Int64 = -1
    """-1 where no transaction is open."""


class DescribedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    active_producers: list[ActiveProducer] = []


class DescribedTopic(Message):
    name: String = ""
    partitions: list[DescribedPartition] = []


class DescribeProducersResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[DescribedTopic] = []


DESCRIBE_PRODUCERS = Api(
    61,
    "DescribeProducers",
    DescribeProducersRequest,
    DescribeProducersResponse,
    0,
    flexible_since=0,
)
