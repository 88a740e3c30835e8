"""What the cluster knows, as the rest of Kafscale sees it: topics, partitions, brokers, owners.

Data only: how it becomes the published protobuf messages is said in `encoding`, under which keys in
`keys`. The law: a value never changes; who wants a change makes a new value with
`msgspec.structs.replace`, and writes it with a compare on the revision of the old one.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

TOPIC_ID_BYTES: Final = 16

DEFAULT_NAMESPACE: Final = "default"

NO_REVISION: Final = 0
"""The revision of what is not in the store."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that exists, or one that is being deleted."""

    name: str
    id: bytes
    """Sixteen random bytes; a topic created again under the same name has others."""
    partitions: int
    configs: Mapping[str, str]
    """What somebody has set; everything else is at its default, and is not in here."""
    created_ms: int
    namespace: str = DEFAULT_NAMESPACE
    version: int = 1
    """Grows by one with every change of the topic."""
    create_revision: int = NO_REVISION
    mod_revision: int = NO_REVISION

    def __post_init__(self) -> None:
        assert len(self.id) == TOPIC_ID_BYTES, self.id
        assert self.partitions >= 1, self.partitions


class SegmentInfo(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A segment, in short."""

    base_offset: int
    size_bytes: int
    created_ms: int
    last_offset: int
    max_timestamp_ms: int


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """What is worth knowing of a partition without opening its log."""

    topic: str
    topic_id: bytes
    partition: int
    leader_broker: str
    leader_epoch: int
    """Grows with every change of the leader: a state with an older epoch is never written."""
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    active_segment: str = ""
    segments: tuple[SegmentInfo, ...] = ()
    """Ascending; only the newest ones are kept (`encoding.SEGMENTS_MAX`)."""
    segment_count: int = 0
    """Of all segments, kept here or not; as the size."""
    size_bytes: int = 0
    rolled_offset: int = 0
    """Up to which offset everything is, or was, in segments."""
    mod_revision: int = NO_REVISION

    @property
    def rolled_end(self) -> int:
        """The same, also where whoever wrote the state did not say it."""
        newest = self.segments[-1].last_offset + 1 if self.segments else 0
        return max(self.rolled_offset, newest)


class ListenerEndpoint(msgspec.Struct, frozen=True):
    """Where a broker is reached by the clients of one listener."""

    name: str
    host: str
    port: int
    security_protocol: str


class BrokerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that is registered, and so alive."""

    id: int
    epoch: int
    """Grows with every registration under this id."""
    host: str
    port: int
    rack: str = ""
    version: str = ""
    started_ms: int = 0
    control_host: str = ""
    control_port: int = 0
    endpoints: tuple[ListenerEndpoint, ...] = ()
    """By listener; `host` and `port` are those of the first."""
    is_draining: bool = False
    """Whether it is about to leave: what it has is moved to others."""
    lease: int = 0
    mod_revision: int = NO_REVISION

    def address_at(self, listener: str) -> tuple[str, int] | None:
        """Where clients of a listener reach it; None where it does not have that listener."""
        for endpoint in self.endpoints:
            if endpoint.name == listener:
                return endpoint.host, endpoint.port
        return None if self.endpoints else (self.host, self.port)


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns a partition, or a shard of groups."""

    topic: str
    partition: int
    broker_id: int
    broker_epoch: int
    """Which registration of the broker owns it; another one than its present one is over."""
    leader_epoch: int
    """Grows by one with every change of the owner."""
    fully_rolled: bool
    """Whether everything that the owner before acknowledged is in segments."""
    reassigning_to: int | None = None
    """The broker that the owner is asked to hand it over to."""
    assigned_ms: int = 0
    mod_revision: int = NO_REVISION

    def is_owned_by(self, broker: "BrokerInfo | None") -> bool:
        """Whether this broker, as it is registered, is the owner."""
        return (
            broker is not None and self.broker_id == broker.id and self.broker_epoch == broker.epoch
        )
