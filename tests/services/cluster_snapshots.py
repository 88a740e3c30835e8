"""Builds cluster snapshots for tests."""

from kafscale.admin.cluster.broker import BrokerStatus, ServedPartition
from kafscale.admin.cluster.listing import GroupSummary, TopicSummary
from kafscale.admin.cluster.metrics import BrokerMetrics, PartitionLag, StoreOperation
from kafscale.admin.cluster.snapshot import ClusterSnapshot


def metrics(
    *,
    produced: dict[tuple[str, int], int] | None = None,
    fetched: dict[tuple[str, int], int] | None = None,
    stored: dict[tuple[str, int], int] | None = None,
    dirty_ratios: dict[str, float] | None = None,
    requests: tuple[int, int] = (0, 0),
    operations: dict[str, StoreOperation] | None = None,
    lags: tuple[PartitionLag, ...] = (),
) -> BrokerMetrics:
    return BrokerMetrics(
        connections=3,
        error_rate=0.0,
        produce_requests=requests[0],
        fetch_requests=requests[1],
        produce_bytes=produced or {},
        fetch_bytes=fetched or {},
        stored_bytes=stored or {},
        dirty_ratios=dirty_ratios or {},
        operations=operations or {},
        lags=lags,
    )


def partition(
    topic: str, number: int, *, state: str = "online", records: int = 0, size_bytes: int = 0
) -> ServedPartition:
    return ServedPartition(
        topic=topic,
        partition=number,
        broker=1,
        state=state,
        moving_to=None,
        leader_epoch=0,
        start_offset=0,
        rolled_offset=0,
        high_watermark=records,
        end_offset=records,
        size_bytes=size_bytes,
    )


def broker(
    broker_id: int,
    state: str = "ready",
    *,
    epoch: int = 1,
    is_draining: bool = False,
    problems: dict[str, str] | None = None,
    store_health: str | None = "healthy",
    partitions: tuple[ServedPartition, ...] = (),
    measured: BrokerMetrics | None = None,
) -> BrokerStatus:
    return BrokerStatus(
        id=broker_id,
        address=f"broker-{broker_id}:9092",
        control=f"broker-{broker_id}:9095",
        rack=None,
        version="1",
        epoch=epoch,
        is_controller=broker_id == 1,
        state=state,
        is_draining=is_draining,
        problems=problems or {},
        store_health=store_health,
        uptime_ms=1000,
        partition_count=len(partitions),
        shard_count=0,
        moving_count=0,
        partitions=partitions,
        metrics=measured,
    )


def topic(name: str, partition_count: int = 1, *, internal: bool = False) -> TopicSummary:
    return TopicSummary(name, "00", internal, partition_count, 0)


def group(name: str, member_count: int | None = 1) -> GroupSummary:
    return GroupSummary(name, "classic", "Stable", "consumer", member_count)


def snapshot(
    *brokers: BrokerStatus,
    at_ms: int = 0,
    topics: tuple[TopicSummary, ...] = (),
    groups: tuple[GroupSummary, ...] = (),
    problem: str | None = None,
    listing_problem: str | None = None,
    controller: int | None = 1,
) -> ClusterSnapshot:
    return ClusterSnapshot(
        at_ms=at_ms,
        cluster_id="cluster",
        controller=controller if brokers else None,
        brokers=brokers,
        topics={each.name: each for each in topics},
        groups={each.group: each for each in groups},
        problem=problem,
        listing_problem=listing_problem,
    )
