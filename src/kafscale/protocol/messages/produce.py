"""Produce (0): append record batches to partitions.

Version notes:
* v0, v1: message sets of magic 0; v2: magic 1 (timestamps); v3 and later: record batches, magic 2.
* v1: throttle time in the response.
* v2: the append time in the response, for topics with LogAppendTime.
* v3: transactional id, for transactional producers (KIP-98).
* v5: log start offset in the response.
* v8: errors per record, and a message (KIP-467).
* v9: flexible.
* v10: the new leader and its address in the response of a former leader (KIP-951).
* v13: topics are identified by id instead of name (KIP-516).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    String,
    Uuid,
    since,
    tag,
    until,
)


class PartitionToProduce(Message):
    index: Int32 = 0
    records: Records | None = None


class TopicToProduce(Message):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: list[PartitionToProduce] = []


class ProduceRequest(Message):
    transactional_id: Annotated[String | None, since(3)] = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topics: list[TopicToProduce] = []


class RecordError(Message):
    batch_index: Int32 = 0
    message: String | None = None


class LeaderIdAndEpoch(Message):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class ProducedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Annotated[Int64, since(2)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    record_errors: Annotated[list[RecordError], since(8)] = []
    error_message: Annotated[String | None, since(8)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, tag(0, since=10)] = None


class ProducedTopic(Message):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: list[ProducedPartition] = []


class NodeEndpoint(Message):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class ProduceResponse(Message):
    topics: list[ProducedTopic] = []
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    node_endpoints: Annotated[list[NodeEndpoint], tag(0, since=10)] = []


PRODUCE = Api(0, "Produce", ProduceRequest, ProduceResponse, 13, flexible_since=9)
