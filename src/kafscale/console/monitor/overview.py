"""The cluster on one page, in the words of the contract, of what is remembered. Pure."""

from typing import Final, Literal, cast

from kafscale.admin.cluster import health, lag
from kafscale.admin.cluster.cost import cost
from kafscale.admin.cluster.metadata_health import MetadataLook
from kafscale.console.monitor import views
from kafscale.console.monitor.state import Remembered
from kafscale.console.schema.cluster import (
    Cost,
    GroupLag,
    Health,
    HealthState,
    Metadata,
    Overview,
    Reason,
    Store,
    Totals,
)

TOP_LAGS: Final = 10


def overview(
    remembered: Remembered, metadata: MetadataLook, *, place: str, is_bucket: bool
) -> Overview:
    """`place` is where the records are, which costs money only if it is a bucket."""
    look = remembered.look
    return Overview(
        cluster_id=look.cluster_id,
        controller=look.controller,
        as_of_ms=look.at_ms,
        health=_health(remembered, metadata),
        brokers=[views.broker(each, remembered.rates) for each in remembered.brokers],
        totals=_totals(remembered),
        throughput=remembered.throughput(),
        lag=remembered.lag(),
        top_lags=[
            GroupLag(group=each.group, topic=each.topic, lag=each.lag)
            for each in lag.largest(remembered.lags, TOP_LAGS)
        ],
        store=_store(remembered, place),
        metadata=_metadata(metadata),
        cost=_cost(remembered, is_bucket=is_bucket),
    )


def _health(remembered: Remembered, metadata: MetadataLook) -> Health:
    found = health.health(remembered.look, remembered.topic_figures, metadata, remembered.gone)
    return Health(
        state=cast("HealthState", found.state),
        reasons=[
            Reason(severity=each.severity, subject=each.subject, sentence=each.sentence)
            for each in found.reasons
        ],
    )


def _totals(remembered: Remembered) -> Totals:
    look, rates = remembered.look, remembered.rates
    topics = [each for each in remembered.topic_figures.values() if not each.internal]
    connections = [
        each.figures.connections
        for each in look.brokers
        if each.figures is not None and each.figures.connections is not None
    ]
    return Totals(
        topic_count=len(topics),
        partition_count=sum(each.partition_count for each in topics),
        leaderless_count=sum(each.leaderless_count for each in topics),
        group_count=len(look.groups),
        connections=sum(connections) if connections else None,
        stored_bytes=remembered.stored_bytes,
        consumer_lag=lag.total(remembered.lags),
        produce_bytes_per_second=rates.total("produce_bytes"),
        fetch_bytes_per_second=rates.total("fetch_bytes"),
        produce_requests_per_second=rates.total("produce_requests"),
        fetch_requests_per_second=rates.total("fetch_requests"),
    )


def _store(remembered: Remembered, place: str) -> Store:
    look = remembered.look
    rates = [
        each.figures.error_rate
        for each in look.brokers
        if each.figures is not None and each.figures.error_rate is not None
    ]
    per_second = remembered.store.operations_per_second()
    return Store(
        place=place,
        state=health.store_state(look.brokers),
        error_rate=max(rates, default=None),
        p99_seconds=remembered.store.p99_seconds(),
        operations_per_second=None if per_second is None else sum(per_second.values()),
    )


def _metadata(found: MetadataLook) -> Metadata:
    return Metadata(
        kind="embedded" if found.kind == "embedded" else "etcd",
        state=cast("Literal['healthy', 'degraded', 'unavailable', 'unknown']", found.state),
        member_count=found.member_count,
        ready_count=found.ready_count,
        database_bytes=found.database_bytes,
        problem=found.problem,
    )


def _cost(remembered: Remembered, *, is_bucket: bool) -> Cost:
    found = cost(
        remembered.stored_bytes, remembered.store.operations_per_second(), is_charged=is_bucket
    )
    return Cost(
        storage_per_day=found.storage_per_day,
        requests_per_day=found.requests_per_day,
        total_per_day=found.total_per_day,
        currency=found.currency,
        basis=found.basis,
    )
