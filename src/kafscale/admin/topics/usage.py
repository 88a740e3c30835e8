"""The size, record count and availability of topics, computed from a snapshot. Pure."""

import msgspec

from kafscale.admin.cluster.snapshot import ClusterSnapshot
from kafscale.text.topic_partition import TopicPartition


class TopicUsage(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A topic at one time."""

    name: str
    topic_id: str
    internal: bool
    partition_count: int
    leaderless_count: int
    record_count: int | None
    """None unless all partitions are served."""
    size_bytes: int | None


class _Sum:
    """Sums over the partitions of a topic."""

    __slots__ = ("owned", "records", "served", "size_bytes")

    def __init__(self) -> None:
        self.owned = self.served = self.records = self.size_bytes = 0


def topic_usage(snapshot: ClusterSnapshot) -> dict[str, TopicUsage]:
    """All topics by name.

    If a broker does not respond, its partitions count as leaderless: they cannot be read or
    written.
    """
    stored = _stored(snapshot)
    sums: dict[str, _Sum] = {}
    for each in snapshot.partitions():
        total = sums.get(each.topic)
        if total is None:
            total = sums[each.topic] = _Sum()
        total.owned += 1
        if each.is_served:
            total.served += 1
            total.records += each.high_watermark - each.start_offset
            size_bytes = stored.get((each.topic, each.partition), 0)
            total.size_bytes += max(each.size_bytes, size_bytes)
    empty = _Sum()
    topics = {}
    for name, listed in snapshot.topics.items():
        total = sums.get(name, empty)
        # Metadata may still list fewer partitions than there are after CreatePartitions.
        count = max(listed.partition_count, total.owned)
        leaderless = listed.leaderless_count if listed.internal else count - total.served
        is_known = not leaderless and not listed.internal
        topics[name] = TopicUsage(
            name=name,
            topic_id=listed.topic_id,
            internal=listed.internal,
            partition_count=count,
            leaderless_count=leaderless,
            record_count=total.records if is_known else None,
            size_bytes=total.size_bytes if is_known else None,
        )
    return topics


def stored_bytes(snapshot: ClusterSnapshot) -> int:
    """The bytes of all topics, including those that metrics report only in total."""
    in_segments = sum(each.size_bytes for each in snapshot.partitions())
    in_metrics = sum(
        sum(each.metrics.stored_bytes.values()) for each in snapshot.brokers if each.metrics
    )
    return max(in_segments, in_metrics)


def dirty_ratios(snapshot: ClusterSnapshot) -> dict[str, float]:
    """By compacted topic, the share of bytes of its dirtiest partition that is not compacted."""
    ratios: dict[str, float] = {}
    for broker in snapshot.brokers:
        for topic, ratio in broker.metrics.dirty_ratios.items() if broker.metrics else ():
            ratios[topic] = max(ratio, ratios.get(topic, 0.0))
    return ratios


def _stored(snapshot: ClusterSnapshot) -> dict[TopicPartition, int]:
    stored: dict[TopicPartition, int] = {}
    for broker in snapshot.brokers:
        if broker.metrics is not None:
            stored |= broker.metrics.stored_bytes
    return stored
