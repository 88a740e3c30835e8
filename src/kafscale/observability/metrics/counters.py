"""The counters of a broker: plain numbers that a scrape reads.

The Prometheus client library is not used, because its label lookups and locks cost more than some
requests. These numbers need no lock, because one event loop changes them, and a slightly outdated
value does no harm. `broker` declares the metrics.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kafscale.observability.metrics.client_metrics import ClientMetrics
from kafscale.observability.metrics.histogram import Histogram, Rate
from kafscale.text.topic_partition import TopicPartition

REQUEST_SECONDS_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""Histogram buckets for client requests, in seconds."""

STORE_SECONDS_BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Histogram buckets for requests to the object store, in seconds."""


class RequestCounters:
    """The requests of one API version."""

    __slots__ = ("_seconds", "refusals", "succeeded")

    def __init__(self, seconds: Histogram) -> None:
        """`seconds` is shared by all versions of the API."""
        self._seconds = seconds
        self.succeeded = 0
        self.refusals: dict[str, int] = {}

    def answered(self, seconds: float) -> None:
        self.succeeded += 1
        self._seconds.observe(seconds)

    def refused(self, error: str, seconds: float) -> None:
        self.refusals[error] = self.refusals.get(error, 0) + 1
        self._seconds.observe(seconds)

    @property
    def total(self) -> int:
        return self.succeeded + sum(self.refusals.values())


class ConnectionCounters:
    """The connections of clients."""

    __slots__ = ("active", "handshakes_failed", "left_at", "refused", "unsent_bytes")

    def __init__(self, now: float = 0.0) -> None:
        self.active = 0
        self.left_at = now
        """When the last client that had sent a request disconnected; initially the start time."""
        self.refused = 0
        self.handshakes_failed = 0
        self.unsent_bytes: Callable[[], int] = lambda: 0
        """Returns the bytes of responses that clients have not received yet."""


class SecurityCounters:
    """Authentications, denials and throttling."""

    __slots__ = ("denied", "logins", "throttled")

    def __init__(self) -> None:
        self.denied = 0
        """Denied operations, counted per resource."""
        self.logins: dict[tuple[str, bool], int] = {}
        """Authentications by mechanism and success."""
        self.throttled: dict[str, int] = {}
        """Throttled responses by quota."""

    def logged_in(self, mechanism: str, *, succeeded: bool) -> None:
        kind = (mechanism, succeeded)
        self.logins[kind] = self.logins.get(kind, 0) + 1


class PartitionCounters:
    """The requests of one partition; the code that serves it keeps a reference."""

    __slots__ = (
        "cache_hits",
        "cache_misses",
        "fetch_bytes",
        "fetches_failed",
        "fetches_succeeded",
        "produce_bytes",
        "produces_failed",
        "produces_succeeded",
    )

    def __init__(self) -> None:
        self.produces_succeeded = 0
        self.produces_failed = 0
        self.produce_bytes = 0
        self.fetches_succeeded = 0
        self.fetches_failed = 0
        self.fetch_bytes = 0
        self.cache_hits = 0
        self.cache_misses = 0

    @property
    def cache_hit_rate(self) -> float:
        reads = self.cache_hits + self.cache_misses
        return self.cache_hits / reads if reads else 0.0


class TopicLatencies:
    __slots__ = ("fetch_seconds", "produce_seconds")

    def __init__(self) -> None:
        self.produce_seconds: dict[int, Histogram] = {}
        """By acks."""
        self.fetch_seconds: dict[bool, Histogram] = {}
        """By cache hit."""

    def produced(self, acks: int, seconds: float) -> None:
        histogram = self.produce_seconds.get(acks)
        if histogram is None:
            histogram = self.produce_seconds[acks] = Histogram(REQUEST_SECONDS_BOUNDS)
        histogram.observe(seconds)

    def fetched(self, cache_hit: bool, seconds: float) -> None:
        histogram = self.fetch_seconds.get(cache_hit)
        if histogram is None:
            histogram = self.fetch_seconds[cache_hit] = Histogram(REQUEST_SECONDS_BOUNDS)
        histogram.observe(seconds)


class OperationCounters:
    """One operation of the object store."""

    __slots__ = ("failed", "seconds", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0
        self.seconds = Histogram(STORE_SECONDS_BOUNDS)

    def observe(self, seconds: float, *, succeeded: bool) -> None:
        if succeeded:
            self.succeeded += 1
        else:
            self.failed += 1
        self.seconds.observe(seconds)


class GroupCounters:
    """The events of one consumer group."""

    __slots__ = ("commits", "rebalances")

    def __init__(self) -> None:
        self.rebalances = 0
        self.commits = 0


class TransactionCounters:
    """The outcomes of this broker's transactional ids."""

    __slots__ = ("aborted", "committed", "timed_out")

    def __init__(self) -> None:
        self.committed = 0
        self.aborted = 0
        """Aborted for any reason, also those that have timed out."""
        self.timed_out = 0


class StoreHealth:
    """The health of the object store, as judged by the broker."""

    __slots__ = ("error_rate", "state")

    STATES: Final = ("healthy", "degraded", "unavailable")

    def __init__(self) -> None:
        self.state: str = self.STATES[0]
        self.error_rate = 0.0


class LogCounters:
    """Records between memory and the object store, over all partitions."""

    __slots__ = (
        "cache_bytes",
        "damaged_reads",
        "segment_bytes_rolled",
        "segments_rolled",
        "tail_bytes",
        "unflushed_bytes",
        "wal_bytes",
        "wal_objects",
        "wal_puts",
        "wal_retries",
    )

    def __init__(self) -> None:
        self.unflushed_bytes = 0
        """Not durable yet."""
        self.wal_puts = 0
        self.wal_bytes = 0
        self.wal_retries = 0
        self.wal_objects = 0
        """Written, and not yet replaced by segments."""
        self.tail_bytes = 0
        """Kept in memory, because no segment contains them yet."""
        self.segments_rolled = 0
        self.segment_bytes_rolled = 0
        self.damaged_reads = 0
        self.cache_bytes = 0
        """Blocks of segments in the cache."""


class CompactionStatus(NamedTuple):
    """What this broker has compacted."""

    runs: int = 0
    failures: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    bytes_reclaimed: int = 0
    records_removed: int = 0
    dirty_ratios: Mapping[str, float] = {}
    """By compacted topic, the largest of its partitions on this broker."""


class ClusterStatus(NamedTuple):
    """The role of a broker in the cluster."""

    brokers: int = 0
    """Live brokers, as seen by this one."""
    is_controller: bool = False
    lease_is_valid: bool = False
    """True while the broker may serve requests."""
    partitions: int = 0
    """Owned by this broker; so are the shards."""
    shards: int = 0
    unknown_wal_objects: int = 0
    """WAL objects that are kept because this cluster does not know their stream or their topics;
    only the controller knows it, as the number of damaged ones.
    """
    damaged_wal_objects: int = 0


class DatabaseSpace(NamedTuple):
    """The space in the database of an etcd member; that of the fullest member is the largest."""

    is_full: bool
    """True while an alarm makes etcd reject writes."""
    used_share: float
    """Of the quota."""
    used_bytes: int
    quota_bytes: int


class Counters:
    """All counters of one process.

    Counters with labels are created on first use; callers keep references to avoid lookups.
    Counters of removed partitions, topics and groups are dropped.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self.timer = timer
        self.started = timer()
        self.connections = ConnectionCounters(self.started)
        self.access = SecurityCounters()
        self.clients = ClientMetrics()
        self.log = LogCounters()
        self.transactions = TransactionCounters()
        self.store_health = StoreHealth()
        self.event_loop_lag_seconds = Histogram(REQUEST_SECONDS_BOUNDS)
        self.by_request: dict[tuple[str, int], RequestCounters] = {}
        self.by_api: dict[str, Histogram] = {}
        self.by_partition: dict[TopicPartition, PartitionCounters] = {}
        self.by_topic: dict[str, TopicLatencies] = {}
        self.by_operation: dict[str, OperationCounters] = {}
        self.by_group: dict[str, GroupCounters] = {}
        self.group_states: Callable[[], Mapping[str, int]] = dict
        """The number of groups per state; called at scrape time."""
        self.group_lags: Callable[[], Iterable[tuple[str, str, int, int]]] = tuple
        """Group, topic, partition and lag; called at scrape time."""
        self.buffered_bytes: Callable[[], Iterable[tuple[str, int, int]]] = tuple
        """Topic, partition and bytes that are not durable yet; called at scrape time."""
        self.stored_bytes: Callable[[], Iterable[tuple[str, int, int]]] = tuple
        """Topic, partition and stored bytes of owned partitions; called at scrape time."""
        self.compaction: Callable[[], CompactionStatus] = CompactionStatus
        """Called at scrape time."""
        self.certificates: Callable[[], Iterable[tuple[str, str, float]]] = tuple
        """Setting, file and expiration of certificates, in seconds since 1970; called at scrape
        time."""
        self.metadata_writes: Callable[[], int] = int
        """The number of commits of coordinators to the metadata store; called at scrape time."""
        self.transaction_states: Callable[[], Mapping[str, int]] = dict
        """The number of transactional ids per state; called at scrape time."""
        self.pending_markers: Callable[[], int] = int
        """The number of markers that are not written yet; called at scrape time."""
        self.open_transactions: Callable[[], Iterable[tuple[str, int, float]]] = tuple
        """Topic, partition and age in seconds of the oldest open transaction of each partition that
        has one; called at scrape time."""
        self.etcd_space: Callable[[], DatabaseSpace | None] = lambda: None
        """The space in etcd; None without etcd; called at scrape time."""
        self.cluster: Callable[[], ClusterStatus] = ClusterStatus
        """The role of this broker; called at scrape time."""
        self._rates: dict[str, Rate] = {}

    def requests(self, api: str, version: int) -> RequestCounters:
        counters = self.by_request.get((api, version))
        if counters is None:
            seconds = self.by_api.setdefault(api, Histogram(REQUEST_SECONDS_BOUNDS))
            counters = self.by_request[api, version] = RequestCounters(seconds)
        return counters

    def partition(self, topic: str, partition: int) -> PartitionCounters:
        counters = self.by_partition.get((topic, partition))
        if counters is None:
            counters = self.by_partition[topic, partition] = PartitionCounters()
        return counters

    def topic(self, topic: str) -> TopicLatencies:
        latencies = self.by_topic.get(topic)
        if latencies is None:
            latencies = self.by_topic[topic] = TopicLatencies()
        return latencies

    def operation(self, operation: str) -> OperationCounters:
        """The counters of an operation of the object store: `put`, `get`, `list`, ..."""
        counters = self.by_operation.get(operation)
        if counters is None:
            counters = self.by_operation[operation] = OperationCounters()
        return counters

    def group(self, group_id: str) -> GroupCounters:
        counters = self.by_group.get(group_id)
        if counters is None:
            counters = self.by_group[group_id] = GroupCounters()
        return counters

    def forget_group(self, group_id: str) -> None:
        self.by_group.pop(group_id, None)

    def forget_topic(self, topic: str) -> None:
        self.by_topic.pop(topic, None)
        for key in [key for key in self.by_partition if key[0] == topic]:
            del self.by_partition[key]

    def idle_seconds(self) -> float:
        """Time since the last client disconnected; connections without a request do not count."""
        return 0.0 if self.connections.active else self.timer() - self.connections.left_at

    def total(self, api: str) -> int:
        """The number of requests of an API, in all versions."""
        return sum(counters.total for (name, _), counters in self.by_request.items() if name == api)

    def per_second(self, api: str) -> float:
        """The request rate of an API."""
        rate = self._rates.setdefault(api, Rate(self.started))
        return rate.per_second(self.timer(), self.total(api))
