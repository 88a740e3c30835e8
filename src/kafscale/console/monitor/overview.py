"""Builds the overview of a cluster from the monitor's state. Pure."""

from typing import Final

from kafscale.admin.cluster import health, lag
from kafscale.admin.cluster.cost import cost
from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.console.monitor import views
from kafscale.console.monitor.state import MonitorState
from kafscale.console.schema.cluster import Health, Overview, Store, Totals

TOP_LAGS: Final = 10


def overview(
    state: MonitorState, metadata: MetadataHealth, *, store_description: str, is_bucket: bool
) -> Overview:
    """`store_description` is where records are; requests cost money only if it is a bucket."""
    snapshot = state.snapshot
    return Overview(
        cluster_id=snapshot.cluster_id,
        controller=snapshot.controller,
        as_of_ms=snapshot.at_ms,
        health=_health(state, metadata),
        brokers=[views.broker(each, state.rates) for each in state.brokers],
        totals=_totals(state),
        throughput=state.throughput(),
        lag=state.lag(),
        top_lags=lag.largest(state.lags, TOP_LAGS),
        store=_store(state, store_description),
        metadata=metadata,
        cost=cost(state.stored_bytes, state.store.operations_per_second(), is_charged=is_bucket),
    )


def _health(state: MonitorState, metadata: MetadataHealth) -> Health:
    result = health.evaluate(state.snapshot, state.topic_usage, metadata, state.gone)
    return Health(state=result.state, reasons=result.reasons)


def _totals(state: MonitorState) -> Totals:
    snapshot, rates = state.snapshot, state.rates
    topics = [each for each in state.topic_usage.values() if not each.internal]
    connections = [
        each.metrics.connections
        for each in snapshot.brokers
        if each.metrics is not None and each.metrics.connections is not None
    ]
    return Totals(
        topic_count=len(topics),
        partition_count=sum(each.partition_count for each in topics),
        leaderless_count=sum(each.leaderless_count for each in topics),
        group_count=len(snapshot.groups),
        connections=sum(connections) if connections else None,
        stored_bytes=state.stored_bytes,
        consumer_lag=lag.total(state.lags),
        produce_bytes_per_second=rates.total("produce_bytes"),
        fetch_bytes_per_second=rates.total("fetch_bytes"),
        produce_requests_per_second=rates.total("produce_requests"),
        fetch_requests_per_second=rates.total("fetch_requests"),
    )


def _store(state: MonitorState, store_description: str) -> Store:
    snapshot = state.snapshot
    rates = [
        each.metrics.error_rate
        for each in snapshot.brokers
        if each.metrics is not None and each.metrics.error_rate is not None
    ]
    per_second = state.store.operations_per_second()
    return Store(
        place=store_description,
        state=health.store_state(snapshot.brokers),
        error_rate=max(rates, default=None),
        p99_seconds=state.store.p99_seconds(),
        operations_per_second=None if per_second is None else sum(per_second.values()),
    )
