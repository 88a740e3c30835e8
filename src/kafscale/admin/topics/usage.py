"""What a look tells of topics: how much they keep, and how much of them is served. Pure."""

import msgspec

from kafscale.admin.cluster.figures import Place
from kafscale.admin.cluster.snapshot import ClusterLook


class TopicFigures(msgspec.Struct, frozen=True, gc=False):
    """A topic at one moment."""

    name: str
    topic_id: str
    internal: bool
    partition_count: int
    leaderless_count: int
    record_count: int | None
    """None where not every partition is served, so that nobody knows."""
    size_bytes: int | None


class _Sum:
    """What is added up over the partitions of a topic."""

    __slots__ = ("owned", "records", "served", "size_bytes")

    def __init__(self) -> None:
        self.owned = self.served = self.records = self.size_bytes = 0


def topic_figures(look: ClusterLook) -> dict[str, TopicFigures]:
    """All topics, by name.

    A broker whose status says nothing of partitions (it does not answer) counts as one that leads
    none of them: nobody can read or write there.
    """
    stored = _stored(look)
    sums: dict[str, _Sum] = {}
    for each in look.partitions():
        found = sums.get(each.topic)
        if found is None:
            found = sums[each.topic] = _Sum()
        found.owned += 1
        if each.is_served:
            found.served += 1
            found.records += each.high_watermark - each.start_offset
            size_bytes = stored.get((each.topic, each.partition), 0)
            found.size_bytes += max(each.size_bytes, size_bytes)
    nothing = _Sum()
    told = {}
    for name, listed in look.topics.items():
        found = sums.get(name, nothing)
        # A topic that has just been grown is listed with fewer partitions than there are.
        count = max(listed.partition_count, found.owned)
        leaderless = listed.leaderless_count if listed.internal else count - found.served
        is_known = not leaderless and not listed.internal
        told[name] = TopicFigures(
            name=name,
            topic_id=listed.topic_id,
            internal=listed.internal,
            partition_count=count,
            leaderless_count=leaderless,
            record_count=found.records if is_known else None,
            size_bytes=found.size_bytes if is_known else None,
        )
    return told


def stored_bytes(look: ClusterLook) -> int:
    """What all topics keep, those included that are not told one by one."""
    in_segments = sum(each.size_bytes for each in look.partitions())
    told = sum(sum(each.figures.stored_bytes.values()) for each in look.brokers if each.figures)
    return max(in_segments, told)


def _stored(look: ClusterLook) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for broker in look.brokers:
        if broker.figures is not None:
            found |= broker.figures.stored_bytes
    return found
