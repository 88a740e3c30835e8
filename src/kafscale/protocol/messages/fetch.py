"""Fetch (1): read record batches of partitions from an offset on, and wait for enough of them.

Version notes:
* v0, v1: message sets of magic 0; v2, v3: magic 1 (timestamps, KIP-32); v4 and later: magic 2.
* v1: throttle time in the response.
* v3: a byte limit for the whole response; partitions are served in request order (KIP-74).
* v4: isolation level; last stable offset and aborted transactions in the response (KIP-98).
* v5: log start offsets, the follower's in the request, ours in the response (KIP-107).
* v6: KAFKA_STORAGE_ERROR may be returned (KIP-112).
* v7: incremental fetch sessions: requests and responses contain changes only (KIP-227).
* v8: a throttled response is sent first and the client muted afterwards (KIP-219).
* v9: the leader epoch that the client knows, for fencing (KIP-320).
* v10: the client reads zstd (KIP-110); a batch of it may only be sent from here on.
* v11: the client's rack, and a replica near it in the response (KIP-392).
* v12: flexible; the epoch last fetched, the diverging epoch, the current leader (KIP-595), the
  snapshot to load instead (KIP-630).
* v13: topics are identified by id instead of name (KIP-516).
* v14: OFFSET_MOVED_TO_TIERED_STORAGE may be returned, to followers only (KIP-405).
* v15: the replica's id moves into a tag, beside its epoch (KIP-903).
* v16: addresses of new leaders in the response (KIP-951).
* v17: the follower's log directory (KIP-853).
* v18: the high watermark that the follower knows (KIP-1166).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    RecordSlices,
    String,
    Uuid,
    since,
    tag,
    until,
)


class ReplicaState(Message):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class PartitionToFetch(Message):
    index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    """The current epoch as known to the client; -1 if unknown."""
    offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    """The epoch of the last record that a follower has; -1 from consumers."""
    log_start_offset: Annotated[Int64, since(5)] = -1
    """Where a follower's log begins; -1 from consumers."""
    max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, tag(0, since=17)] = UUID_ZERO
    high_watermark: Annotated[Int64, tag(1, since=18)] = 0x7FFF_FFFF_FFFF_FFFF
    """The high watermark that a follower knows; the default means unknown."""


class TopicToFetch(Message):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: list[PartitionToFetch] = []


class TopicToForget(Message):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: list[Int32] = []


class FetchRequest(Message):
    cluster_id: Annotated[String | None, tag(0, since=12)] = None
    replica_id: Annotated[Int32, until(14)] = -1
    """The broker that follows; -1 from consumers."""
    replica_state: Annotated[ReplicaState | None, tag(1, since=15)] = None
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Annotated[Int32, since(3)] = 0x7FFF_FFFF
    isolation_level: Annotated[Int8, since(4)] = 0
    """0: read uncommitted, 1: read committed."""
    session_id: Annotated[Int32, since(7)] = 0
    """0 if there is no session yet."""
    session_epoch: Annotated[Int32, since(7)] = -1
    """-1: no session, 0: a new session, else the number of this fetch in the session."""
    topics: list[TopicToFetch] = []
    topics_to_forget: Annotated[list[TopicToForget], since(7)] = []
    """Partitions that leave the session."""
    rack_id: Annotated[String, since(11)] = ""


class EpochEndOffset(Message):
    leader_epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Message):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Message):
    end_offset: Int64 = -1
    leader_epoch: Int32 = -1


class AbortedTransaction(Message):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class FetchedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Annotated[Int64, since(4)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, tag(0, since=12)] = None
    """The last epoch up to which the follower's log agrees with ours, and where it ends."""
    current_leader: Annotated[LeaderIdAndEpoch | None, tag(1, since=12)] = None
    snapshot_id: Annotated[SnapshotId | None, tag(2, since=12)] = None
    """The snapshot to load instead, of the metadata log only."""
    aborted_transactions: Annotated[list[AbortedTransaction] | None, since(4)] = []
    """None where the client reads uncommitted."""
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    """The broker to fetch from instead; -1 for none."""
    records: RecordSlices | None = None


class FetchedTopic(Message):
    name: Annotated[String, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: list[FetchedPartition] = []


class NodeEndpoint(Message):
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None


class FetchResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = 0
    """0 if no session was created."""
    topics: list[FetchedTopic] = []
    node_endpoints: Annotated[list[NodeEndpoint], tag(0, since=16)] = []


FETCH = Api(1, "Fetch", FetchRequest, FetchResponse, 18, flexible_since=12)
