"""API types of the cluster, brokers, topics and groups, built from the monitor's state. Pure."""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

from kafscale.admin.cluster import health, lag
from kafscale.admin.cluster.broker import BrokerStatus
from kafscale.admin.cluster.cost import cost
from kafscale.admin.cluster.lag import ByTopic
from kafscale.admin.cluster.listing import GroupSummary
from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.admin.topics.usage import TopicUsage
from kafscale.console.monitor.broker_presence import ObservedBroker
from kafscale.console.monitor.rates import Rates, TopicRate
from kafscale.console.monitor.state import MonitorState
from kafscale.console.schema.cluster import Broker, BrokerPartition, Health, Overview, Store, Totals
from kafscale.console.schema.groups import Group
from kafscale.console.schema.topics import Topic

TOP_LAGS: Final = 10

IDLE = TopicRate()
_STATUS_FIELDS = {*Broker.__struct_fields__} & {*BrokerStatus.__struct_fields__}


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
        brokers=[broker(each, state.rates) for each in state.brokers],
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


def broker(observed: ObservedBroker, rates: Rates) -> Broker:
    status = observed.broker
    rate = rates.brokers.get(status.id)
    return Broker(
        **{name: getattr(status, name) for name in _STATUS_FIELDS},
        connections=status.metrics.connections if status.metrics else None,
        produce_bytes_per_second=rate.produce_bytes if rate else None,
        fetch_bytes_per_second=rate.fetch_bytes if rate else None,
        seen_at_ms=observed.at_ms,
    )


def partitions(broker_status: BrokerStatus, count_max: int) -> list[BrokerPartition]:
    """The partitions of a broker, at most `count_max`."""
    shown = broker_status.partitions[:count_max]
    return msgspec.convert(shown, list[BrokerPartition], from_attributes=True)


def topic(usage: TopicUsage, rates: Rates, dirty_ratio: float | None) -> Topic:
    """A topic; its rates are unknown until any broker has rates."""
    rate = rates.topics.get(usage.name, IDLE) if rates.brokers else None
    return Topic(
        **msgspec.structs.asdict(usage),
        produce_bytes_per_second=rate.produce if rate else None,
        fetch_bytes_per_second=rate.fetch if rate else None,
        dirty_ratio=dirty_ratio,
    )


def group(summary: GroupSummary, lags: Mapping[str, ByTopic]) -> Group:
    topics = lags.get(summary.group)
    return Group(
        **msgspec.structs.asdict(summary),
        topics=sorted(topics) if topics else [],
        lag=sum(topics.values()) if topics is not None else None,
    )


class SnapshotViews:
    """The API types of one snapshot, built on first use and shared by all requests."""

    def __init__(self, state: MonitorState, overview: Overview) -> None:
        self.overview = overview
        self._usage = state.topic_usage
        self._rates = state.rates
        self._dirty_ratios = state.dirty_ratios
        self._group_summaries = state.snapshot.groups
        self._lags = state.lags

    @cached_property
    def overview_json(self) -> bytes:
        return msgspec.json.encode(self.overview)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {
            name: topic(each, self._rates, self._dirty_ratios.get(name))
            for name, each in self._usage.items()
        }

    @cached_property
    def groups(self) -> dict[str, Group]:
        return {name: group(each, self._lags) for name, each in self._group_summaries.items()}
