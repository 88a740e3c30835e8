"""The cluster as a whole, and its brokers."""

from typing import Literal

from kafscale.console.schema.base import Asked, Series, View

HealthState = Literal["healthy", "degraded", "down", "unknown"]
BrokerState = Literal["ready", "not ready", "draining", "unreachable", "gone"]
"""A broker that is `gone` was there lately and is not any more, without having been drained."""


class Reason(View):
    """One thing that is not as it should be."""

    severity: Literal["warning", "critical"]
    subject: str
    """Such as `broker 2`, `S3`, `etcd` or `topic orders`."""
    sentence: str


class Health(View):
    state: HealthState
    reasons: list[Reason]


class Broker(View):
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


class BrokerPartition(View):
    """A partition that a broker serves."""

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


class BrokerDetail(View):
    broker: Broker
    partitions: list[BrokerPartition]
    """At most 1,000 of them, by topic and number."""
    partition_total: int
    throughput: list[Series]


class Totals(View):
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


class Store(View):
    """Where the records are, and how that does."""

    place: str
    """Such as `s3://bucket/namespace`, or a directory."""
    state: str | None
    """`healthy`, `degraded` or `unavailable`: the worst that a broker sees."""
    error_rate: float | None
    p99_seconds: dict[str, float]
    """Of the last minutes, by operation."""
    operations_per_second: float | None


class Metadata(View):
    """Where the metadata are, and how that does."""

    kind: Literal["etcd", "embedded"]
    state: Literal["healthy", "degraded", "unavailable", "unknown"]
    member_count: int
    ready_count: int
    database_bytes: int | None
    problem: str | None


class Cost(View):
    """What the object store costs a day at list prices, in US dollars, if it goes on like this."""

    storage_per_day: float
    requests_per_day: float | None
    total_per_day: float | None
    currency: str
    basis: str
    """A sentence that says what was measured, and at which prices."""


class GroupLag(View):
    group: str
    topic: str
    lag: int


class Overview(View):
    cluster_id: str
    controller: int | None
    as_of_ms: int
    health: Health
    brokers: list[Broker]
    totals: Totals
    throughput: list[Series]
    """`produce` and `fetch`, in bytes per second."""
    lag: list[Series]
    """`lag`: over all groups, in records."""
    top_lags: list[GroupLag]
    """The largest, at most 10."""
    store: Store
    metadata: Metadata
    cost: Cost


class Drain(Asked):
    reason: str = "asked for in the console"
    deadline_seconds: int = 60


class PartitionName(View):
    topic: str
    partition: int


class Drained(View):
    broker: int
    drained: list[PartitionName]
    pending: list[PartitionName]


class Flush(Asked):
    """What is to become segments: everything of a broker, or of a topic, or some partitions."""

    topic: str | None = None
    partitions: list[int] = []


class Flushed(View):
    partitions: list[PartitionName]


class Move(View):
    topic: str
    partition: int
    source: int
    target: int
    done: bool


class Rebalanced(View):
    moves: list[Move]
