"""What was seen, in the words of the contract: brokers, topics and groups. Pure."""

from collections.abc import Mapping
from typing import cast

from kafscale.admin.cluster.broker import BrokerLook
from kafscale.admin.cluster.lag import ByTopic
from kafscale.admin.cluster.listing import GroupLook
from kafscale.admin.topics.usage import TopicFigures
from kafscale.console.monitor.broker_presence import Seen
from kafscale.console.monitor.rates import Rates, TopicRate
from kafscale.console.schema.cluster import Broker, BrokerPartition, BrokerState
from kafscale.console.schema.groups import Group
from kafscale.console.schema.topics import Topic

QUIET = TopicRate()


def broker(seen: Seen, rates: Rates) -> Broker:
    found = seen.broker
    rate = rates.brokers.get(found.id)
    return Broker(
        id=found.id,
        address=found.address,
        control=found.control,
        rack=found.rack,
        version=found.version,
        epoch=found.epoch,
        is_controller=found.is_controller,
        state=cast("BrokerState", found.state),
        problems=found.problems,
        store_health=found.store_health,
        uptime_ms=found.uptime_ms,
        partition_count=found.partition_count,
        shard_count=found.shard_count,
        moving_count=found.moving_count,
        connections=found.figures.connections if found.figures else None,
        produce_bytes_per_second=rate.produce_bytes if rate else None,
        fetch_bytes_per_second=rate.fetch_bytes if rate else None,
        seen_at_ms=seen.at_ms,
    )


def partitions(found: BrokerLook, count_max: int) -> list[BrokerPartition]:
    """What a broker serves, by topic and number, as far as there is room."""
    return [
        BrokerPartition(
            topic=each.topic,
            partition=each.partition,
            state=each.state,
            moving_to=each.moving_to,
            leader_epoch=each.leader_epoch,
            start_offset=each.start_offset,
            rolled_offset=each.rolled_offset,
            high_watermark=each.high_watermark,
            end_offset=each.end_offset,
            size_bytes=each.size_bytes,
        )
        for each in found.partitions[:count_max]
    ]


def topic(found: TopicFigures, rates: Rates) -> Topic:
    """A topic; while nothing is measured at all, nobody knows that it is quiet."""
    rate = rates.topics.get(found.name, QUIET) if rates.brokers else None
    return Topic(
        name=found.name,
        topic_id=found.topic_id,
        internal=found.internal,
        partition_count=found.partition_count,
        leaderless_count=found.leaderless_count,
        record_count=found.record_count,
        size_bytes=found.size_bytes,
        produce_bytes_per_second=rate.produce if rate else None,
        fetch_bytes_per_second=rate.fetch if rate else None,
    )


def group(found: GroupLook, lags: Mapping[str, ByTopic]) -> Group:
    topics = lags.get(found.group)
    return Group(
        group=found.group,
        type=found.type,
        state=found.state,
        protocol_type=found.protocol_type,
        member_count=found.member_count,
        topics=sorted(topics) if topics else [],
        lag=sum(topics.values()) if topics is not None else None,
    )
