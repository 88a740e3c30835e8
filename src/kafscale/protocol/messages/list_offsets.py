"""ListOffsets (2): find the offset of a partition by timestamp, or its first or next one.

Version notes:
* v0: up to N segment starts before a time, as an array of offsets.
* v1: one offset, of the first record at or after a time, with its timestamp (KIP-79).
* v2: isolation level; throttle time in the response (KIP-98).
* v3: a throttled response is sent first and the client muted afterwards (KIP-219).
* v4: leader epochs, the client's for fencing, ours in the response (KIP-320).
* v5: OFFSET_NOT_AVAILABLE may be returned by a new leader (KIP-207).
* v6: flexible.
* v7: -3 asks for the record of the highest timestamp (KIP-734).
* v8: -4 asks for the first offset that is held locally (KIP-405).
* v9: -5 asks for the last offset that is in tiered storage (KIP-1005).
* v10: a timeout, for responses that wait for tiered storage (KIP-1075).
* v11: -6 asks for the first offset that is not uploaded yet (KIP-1023).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Int64, Message, String, since, until


class PartitionToList(Message):
    index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(4)] = -1
    """The current epoch as known to the client; -1 if unknown."""
    timestamp_ms: Int64 = 0
    """A time, or: -1 the next offset, -2 the first, -3 to -6 as in the version notes."""
    max_offset_count: Annotated[Int32, until(0)] = 1


class TopicToList(Message):
    name: String = ""
    partitions: list[PartitionToList] = []


class ListOffsetsRequest(Message):
    replica_id: Int32 = 0
    """The broker that follows; -1 from consumers."""
    isolation_level: Annotated[Int8, since(2)] = 0
    """0: read uncommitted, 1: read committed."""
    topics: list[TopicToList] = []
    timeout_ms: Annotated[Int32, since(10)] = 0


class ListedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    offsets: Annotated[list[Int64], until(0)] = []
    """The latest first."""
    timestamp_ms: Annotated[Int64, since(1)] = -1
    """That of the record found; -1 if no record was requested or found."""
    offset: Annotated[Int64, since(1)] = -1
    """-1 if no record is at or after the time."""
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListedTopic(Message):
    name: String = ""
    partitions: list[ListedPartition] = []


class ListOffsetsResponse(Message):
    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: list[ListedTopic] = []


LIST_OFFSETS = Api(2, "ListOffsets", ListOffsetsRequest, ListOffsetsResponse, 11, flexible_since=6)
