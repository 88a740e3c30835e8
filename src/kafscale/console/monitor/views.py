"""API types of brokers, topics and groups, built from the monitor's state. Pure."""

from collections.abc import Mapping
from functools import cached_property

import msgspec

from kafscale.admin.cluster.broker import BrokerStatus
from kafscale.admin.cluster.lag import ByTopic
from kafscale.admin.cluster.listing import GroupSummary
from kafscale.admin.topics.usage import TopicUsage
from kafscale.console.monitor.broker_presence import ObservedBroker
from kafscale.console.monitor.rates import Rates, TopicRate
from kafscale.console.monitor.state import MonitorState
from kafscale.console.schema.cluster import Broker, BrokerPartition, Overview
from kafscale.console.schema.groups import Group
from kafscale.console.schema.topics import Topic

IDLE = TopicRate()
_STATUS_FIELDS = {*Broker.__struct_fields__} & {*BrokerStatus.__struct_fields__}


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


def topic(usage: TopicUsage, rates: Rates) -> Topic:
    """A topic; its rates are unknown until any broker has rates."""
    rate = rates.topics.get(usage.name, IDLE) if rates.brokers else None
    return Topic(
        **msgspec.structs.asdict(usage),
        produce_bytes_per_second=rate.produce if rate else None,
        fetch_bytes_per_second=rate.fetch if rate else None,
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
        self._group_summaries = state.snapshot.groups
        self._lags = state.lags

    @cached_property
    def overview_json(self) -> bytes:
        return msgspec.json.encode(self.overview)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {name: topic(each, self._rates) for name, each in self._usage.items()}

    @cached_property
    def groups(self) -> dict[str, Group]:
        return {name: group(each, self._lags) for name, each in self._group_summaries.items()}
