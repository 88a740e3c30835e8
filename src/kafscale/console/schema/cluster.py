"""The cluster as a whole, and its brokers."""

from typing import Literal

from kafscale.admin.cluster import cost, health, lag, operations
from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.console.schema.base import RequestModel, ResponseModel, Series

HealthState = Literal["healthy", "degraded", "down", "unknown"]
BrokerState = Literal["ready", "not ready", "draining", "unreachable", "gone"]
"""A broker that is `gone` was live recently, and left without being drained."""


Cost = cost.Cost
Drained = operations.DrainResult
GroupLag = lag.GroupLag
Metadata = MetadataHealth
PartitionName = operations.PartitionName
Reason = health.Reason


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
