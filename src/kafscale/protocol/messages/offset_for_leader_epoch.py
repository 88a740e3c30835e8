"""OffsetForLeaderEpoch (23): where a leader epoch ended, to find out what a reader must unread.

Version notes:
* v0: followers ask, to truncate their logs (KIP-101).
* v1: the epoch in the answer, which may be an older one than was asked for (KIP-279).
* v2: consumers ask too; the leader epoch that they know, to fence the outdated (KIP-320); throttle
  time in the answer.
* v3: the id of the replica that asks.
* v4: flexible.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String, since


class EpochOfPartition(Message):
    index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(2)] = -1
    """The epoch that the client believes to be current; -1 where it does not know."""
    leader_epoch: Int32 = 0
    """The epoch whose end is asked for."""


class EpochsOfTopic(Message):
    name: String = ""
    partitions: list[EpochOfPartition] = []


class OffsetForLeaderEpochRequest(Message):
    replica_id: Annotated[Int32, since(3)] = -2
    """The broker that follows; -1 from consumers; -2 from who may see past the high watermark."""
    topics: list[EpochsOfTopic] = []


class EpochEndOfPartition(Message):
    error_code: Int16 = 0
    index: Int32 = 0
    leader_epoch: Annotated[Int32, since(1)] = -1
    """The latest epoch that is not after the one asked for; -1 where there is none."""
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
