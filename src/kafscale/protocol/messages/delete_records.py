"""DeleteRecords (21): delete the records of partitions before an offset (KIP-107).

Version notes:
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String


class PartitionToTrim(Message):
    index: Int32 = 0
    offset: Int64 = 0
    """The first offset to keep; -1 for the high watermark, which keeps nothing."""


class TopicToTrim(Message):
    name: String = ""
    partitions: list[PartitionToTrim] = []


class DeleteRecordsRequest(Message):
    topics: list[TopicToTrim] = []
    timeout_ms: Int32 = 0


class TrimmedPartition(Message):
    index: Int32 = 0
    low_watermark: Int64 = 0
    """The first offset that is left; -1 beside an error."""
    error_code: Int16 = 0


class TrimmedTopic(Message):
    name: String = ""
    partitions: list[TrimmedPartition] = []


class DeleteRecordsResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[TrimmedTopic] = []


DELETE_RECORDS = Api(
    21, "DeleteRecords", DeleteRecordsRequest, DeleteRecordsResponse, 2, flexible_since=2
)
