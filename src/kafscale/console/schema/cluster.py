"""The cluster as a whole: brokers, etcd and pipeline jobs."""

from typing import Literal

from kafscale.admin import jobs
from kafscale.admin.cluster import cost, health, lag, operations
from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.console.schema.base import RequestModel, ResponseModel, Series

HealthState = Literal["healthy", "degraded", "down", "unknown"]
BrokerState = Literal["ready", "not ready", "draining", "unreachable", "gone"]
"""A broker that is `gone` was live recently, and left without being drained."""

Cost = cost.Cost
CostReport = jobs.CostReport
Drained = operations.DrainResult
GroupLag = lag.GroupLag
Metadata = MetadataHealth
PartitionName = operations.PartitionName
Reason = health.Reason
TopicCost = jobs.TopicCost


class Health(ResponseModel):
    state: HealthState
    reasons: tuple[Reason, ...]


class Broker(ResponseModel):
    id: int
    address: str | None
    control: str | None
    rack: str | None
    version: str
    epoch: int
    is_controller: bool
    state: BrokerState
    problems: dict[str, str]
    store_health: str | None
    uptime_ms: int | None
    partition_count: int
    shard_count: int
    moving_count: int
    connections: int | None
    produce_bytes_per_second: float | None
    fetch_bytes_per_second: float | None
    seen_at_ms: int


class BrokerPartition(ResponseModel):
    """A partition that a broker owns."""

    topic: str
    partition: int
    state: str
    moving_to: int | None
    leader_epoch: int
    start_offset: int
    rolled_offset: int
    high_watermark: int
    end_offset: int
    size_bytes: int


class BrokerDetail(ResponseModel):
    broker: Broker
    partitions: list[BrokerPartition]
    """At most 1,000, by topic and partition."""
    partition_total: int
    throughput: list[Series]


class Totals(ResponseModel):
    topic_count: int
    partition_count: int
    leaderless_count: int
    group_count: int
    connections: int | None
    stored_bytes: int
    consumer_lag: int
    produce_bytes_per_second: float | None
    fetch_bytes_per_second: float | None
    produce_requests_per_second: float | None
    fetch_requests_per_second: float | None


class Store(ResponseModel):
    """The object store and its health."""

    place: str
    """Such as `s3://bucket/namespace`, or a directory."""
    state: str | None
    """`healthy`, `degraded` or `unavailable`: the worst that a broker reports."""
    error_rate: float | None
    p99_seconds: dict[str, float]
    """In the last minutes, by operation."""
    operations_per_second: float | None


class Overview(ResponseModel):
    cluster_id: str
    controller: int | None
    as_of_ms: int
    health: Health
    brokers: list[Broker]
    totals: Totals
    throughput: list[Series]
    """`produce` and `fetch`, in bytes per second."""
    lag: list[Series]
    """`lag`: the sum over all groups, in records."""
    top_lags: list[GroupLag]
    """The largest, at most 10."""
    store: Store
    metadata: Metadata
    cost: Cost


class Drain(RequestModel):
    reason: str = "requested in the console"
    deadline_seconds: int = 60


class Flush(RequestModel):
    """What to write as segments: a whole topic, or some of its partitions."""

    topic: str | None = None
    partitions: list[int] = []


class Flushed(ResponseModel):
    partitions: list[PartitionName]


class Move(ResponseModel):
    topic: str
    partition: int
    source: int
    target: int
    done: bool


class Rebalanced(ResponseModel):
    moves: list[Move]


class EtcdMember(ResponseModel):
    name: str
    endpoint: str
    role: str | None
    version: str | None
    database_bytes: int | None
    used_bytes: int | None
    """The used part of the database; defragmentation frees the rest."""
    revision: int | None
    alarms: list[str]
    problem: str | None


class Snapshot(ResponseModel, kw_only=True):
    key: str
    taken_at: str
    age_seconds: int
    size_bytes: int
    revision: int
    etcd_version: str | None = None
    verified: str
    problem: str | None = None


class EtcdState(ResponseModel):
    is_configured: bool
    """False for the embedded store, which keeps its metadata in a file."""
    members: list[EtcdMember]
    snapshots: list[Snapshot]
    """Newest first."""
    snapshots_at: str | None
    """The bucket and the prefix of the snapshots."""
    problem: str | None


class TakeSnapshot(RequestModel):
    retain: int = 0
    """How many snapshots to keep, the newest; 0 keeps all."""


class Run(ResponseModel):
    job: str
    topics: list[str]
    started_at_ms: int
    ended_at_ms: int | None
    outcome: Literal["running", "succeeded", "failed"]
    error: str | None
    records_in: int | None
    records_out: int | None
    size_bytes: int | None
    newest_timestamp_ms: int | None
    details: dict[str, str | int | float | None]


class Job(ResponseModel):
    job: str
    last: Run
    success_rate: float
    freshness_ms: int | None
    """The age of the newest record that the job has processed."""
    runs: list[Run]
    """Newest first, at most 50."""


class Pipeline(ResponseModel):
    jobs: list[Job]
    cost: CostReport | None
    problem: str | None
