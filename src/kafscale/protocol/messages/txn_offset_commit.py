"""TxnOffsetCommit (28): commit the offsets of a group with a transaction (KIP-98).

Version notes:
* v2: leader epoch of the committed offset (KIP-320).
* v3: flexible; generation, member and group instance, so that a removed member is
  fenced (KIP-447).
* v4: the response may have the error TRANSACTION_ABORTABLE (KIP-890).
* v5: adds the group to the transaction; before, a client had to send AddOffsetsToTxn first
  (KIP-890).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Int64, Message, String, since


class PartitionToCommit(Message):
    index: Int32 = 0
    committed_offset: Int64 = 0
    leader_epoch: Annotated[Int32, since(2)] = -1
    """The epoch of the last record that was read, -1 when the client does not know it."""
    metadata: String | None = ""


class TopicToCommit(Message):
    name: String = ""
    partitions: list[PartitionToCommit] = []


class TxnOffsetCommitRequest(Message):
    transactional_id: String = ""
    group_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, since(3)] = -1
    """-1 when the client belongs to no generation of the group."""
    member_id: Annotated[String, since(3)] = ""
    group_instance_id: Annotated[String | None, since(3)] = None
    topics: list[TopicToCommit] = []


class CommittedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0


class CommittedTopic(Message):
    name: String = ""
    partitions: list[CommittedPartition] = []


class TxnOffsetCommitResponse(Message):
    throttle_time_ms: Int32 = 0
    topics: list[CommittedTopic] = []


TXN_OFFSET_COMMIT = Api(
    28, "TxnOffsetCommit", TxnOffsetCommitRequest, TxnOffsetCommitResponse, 5, flexible_since=3
)
