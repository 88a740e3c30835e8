"""The metadata of a cluster as values: topics, partition states, brokers, assignments and shards.

`topic_codec` and `cluster_codec` encode them, `keys` defines where they are stored. Values are
immutable: to change one, write a copy (`msgspec.structs.replace`) with a compare on the revision of
the original.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.text.topic_partition import topic_directory

TOPIC_ID_BYTES: Final = 16

DEFAULT_NAMESPACE: Final = "default"

NO_BROKER: Final = -1
"""In place of a broker id: there is no leader, owner or controller."""
NO_REVISION: Final = 0
"""The revision of a value that is not stored."""

SHARD_COUNT: Final = 50
"""Consumer groups are hashed to this many shards, which are assigned like partitions."""
SHARDS_TOPIC: Final = "__consumer_offsets"
"""Stands for the shards in assignments. Clients see an internal topic of this name, which shows
what the metadata store holds (`metadata.topics.internal`); it has no records of its own."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, or one that was deleted."""

    name: str
    id: bytes
    """16 random bytes; a topic that is deleted and created again has another id."""
    partitions: int
    configs: Mapping[str, str]
    """Configs that were set explicitly; defaults are not included."""
    created_ms: int
    namespace: str = DEFAULT_NAMESPACE
    version: int = 1
    """Incremented with every change of the topic."""
    id_in_keys: bool = False
    """Whether the keys of its objects contain its id, because the name was used before."""
    replicas: Mapping[int, tuple[int, ...]] = {}
    """The brokers of the partitions that were assigned by request, in the order of preference. The
    controller places all other partitions as it likes.
    """
    earlier_without_id: bool = False
    """Whether a deleted topic of this name had no id in its keys: what a former owner writes late
    under these keys can be deleted."""
    emptied_ms: int = 0
    """When the objects of a deleted topic were deleted; 0 before that."""
    create_revision: int = NO_REVISION
    mod_revision: int = NO_REVISION

    def __post_init__(self) -> None:
        assert len(self.id) == TOPIC_ID_BYTES, self.id
        assert self.partitions >= 1, self.partitions

    @property
    def directory(self) -> str:
        """The part of object keys that stands for this topic, and for no other one ever."""
        return topic_directory(self.name, self.id if self.id_in_keys else None)


class SegmentInfo(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The summary of a segment."""

    base_offset: int
    size_bytes: int
    created_ms: int
    last_offset: int
    max_timestamp_ms: int


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a partition's log, available without opening it."""

    topic: str
    topic_id: bytes
    partition: int
    leader_broker: str
    leader_epoch: int
    """Incremented with every change of leader; a state with an older epoch is never written."""
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    active_segment: str = ""
    segments: tuple[SegmentInfo, ...] = ()
    """Ascending; only the newest are stored (`topic_codec.SEGMENTS_MAX`)."""
    segment_count: int = 0
    """Of all segments, listed or not; so is `size_bytes`."""
    size_bytes: int = 0
    rolled_offset: int = 0
    """The end of the records that were rolled to segments."""
    mod_revision: int = NO_REVISION

    @property
    def rolled_end(self) -> int:
        """`rolled_offset`, derived from `segments` if the writer did not set it."""
        newest = self.segments[-1].last_offset + 1 if self.segments else 0
        return max(self.rolled_offset, newest)


class ListenerEndpoint(msgspec.Struct, frozen=True):
    """The address of a broker for clients of one listener."""

    name: str
    host: str
    port: int
    security_protocol: str


class BrokerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A registered broker; registration means that its lease is valid."""

    id: int
    epoch: int
    """The broker epoch; it grows with every registration of this id."""
    host: str
    port: int
    rack: str = ""
    version: str = ""
    started_ms: int = 0
    control_host: str = ""
    control_port: int = 0
    endpoints: tuple[ListenerEndpoint, ...] = ()
    """One per listener; `host` and `port` are those of the first."""
    is_draining: bool = False
    """The broker is leaving: its partitions and shards are moved to other brokers."""
    location: str = ""
    """Where its process listens; a process that listens there now has replaced it."""
    lease: int = 0
    mod_revision: int = NO_REVISION

    def address_at(self, listener: str) -> tuple[str, int] | None:
        """The address for clients of a listener; None if the broker has no such listener."""
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return endpoint.host, endpoint.port
        return None if self.endpoints else (self.host, self.port)


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """The owner of a partition or of a group shard."""

    topic: str
    topic_id: bytes = b""
    """Empty for a group shard. A topic that is created again has another id."""
    partition: int
    broker_id: int
    broker_epoch: int
    """The registration that owns it; if the broker has registered again, the owner is gone."""
    leader_epoch: int
    """Incremented with every change of owner."""
    fully_rolled: bool
    """Whether everything that the owner before acknowledged is in segments."""
    reassigning_to: int | None = None
    """The broker that the owner is asked to hand it over to."""
    end_offset: int | None = None
    """The end of the log when the owner before transferred it; None if it did not, or a shard."""
    lost_owner: tuple[int, int] | None = None
    """The broker id and epoch of the owner before, if its session ended without a transfer."""
    assigned_ms: int = 0
    mod_revision: int = NO_REVISION

    def is_owned_by(self, broker: "BrokerInfo | None") -> bool:
        """True if this registration of the broker is the owner."""
        return (
            broker is not None and self.broker_id == broker.id and self.broker_epoch == broker.epoch
        )


def shard_of(group_id: str) -> int:
    """The shard of a group id or transactional id, by Kafka's function for `__consumer_offsets`.

    It is `Utils.abs(id.hashCode()) % 50` in Java; the least hash, whose absolute value has no int,
    counts as 0.

    >>> shard_of("test-group"), shard_of("group-7"), shard_of("polygenelubricants"), shard_of("")
    (12, 5, 0, 0)
    """
    hashed = 0
    for unit in memoryview(group_id.encode("utf-16-le", "surrogatepass")).cast("H"):
        hashed = (31 * hashed + unit) & 0xFFFF_FFFF
    if hashed > 0x8000_0000:
        hashed = 0x1_0000_0000 - hashed
    return (hashed & 0x7FFF_FFFF) % SHARD_COUNT
