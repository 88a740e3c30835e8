"""OffsetForLeaderEpoch (23): the end offset of a leader epoch, to detect log truncation.

Version notes:
* v0: followers ask, to truncate their logs (KIP-101).
* v1: the epoch in the response, which may be an older one than requested (KIP-279).
* v2: for consumers, too; the current leader epoch, for fencing (KIP-320); throttle
  time in the response.
* v3: the id of the replica that asks.
* v4: flexible.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String, since


class EpochOfPartition(Message):
    index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(2)] = -1
    """The current epoch as known to the client; -1 if unknown."""
    leader_epoch: Int32 = 0
    """The requested epoch."""


class EpochsOfTopic(Message):
    name: String = ""
    partitions: list[EpochOfPartition] = []


class OffsetForLeaderEpochRequest(Message):
    replica_id: Annotated[Int32, since(3)] = -2
    """The follower's broker id; -1 for consumers; -2 to read past the high watermark."""
    topics: list[EpochsOfTopic] = []


class EpochEndOfPartition(Message):
    error_code: Int16 = 0
    index: Int32 = 0
    leader_epoch: Annotated[Int32, since(1)] = -1
    """The latest epoch that is not after the requested one; -1 where there is none."""
    end_offset: Int64 = -1
    """The offset after the last record of that epoch; -1 where there is none."""


class EpochEndsOfTopic(Message):
    name: String = ""
    partitions: list[EpochEndOfPartition] = []


class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: list[EpochEndsOfTopic] = []


OFFSET_FOR_LEADER_EPOCH = Api(
    23,
    "OffsetForLeaderEpoch",
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    4,
    flexible_since=4,
)
