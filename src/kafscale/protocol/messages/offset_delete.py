"""OffsetDelete (47): delete committed offsets of topics that a group no longer reads (KIP-496).

Version notes:
* v0: the only one, and not flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String


class PartitionToDelete(Message):
    index: Int32 = 0


class TopicToDelete(Message):
    name: String = ""
    partitions: list[PartitionToDelete] = []


class OffsetDeleteRequest(Message):
    group_id: String = ""
    topics: list[TopicToDelete] = []


class DeletedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0


class DeletedTopic(Message):
    name: String = ""
    partitions: list[DeletedPartition] = []


class OffsetDeleteResponse(Message):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[DeletedTopic] = []


OFFSET_DELETE = Api(47, "OffsetDelete", OffsetDeleteRequest, OffsetDeleteResponse, 0)
