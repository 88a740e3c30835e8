"""What is counted where work is done: plain numbers, which a scrape reads when it comes.

Why not the client library's counters: looking a child up by its labels and taking its lock costs
more than some requests do. These need no lock, because one event loop moves them, and a reader that
sees a number a moment old does no harm. How they are named to the world is left to `metrics`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kafscale.observability.metrics.histogram import Histogram, Rate

REQUEST_SECONDS_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""Seconds within which clients are answered."""

STORE_SECONDS_BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds within which the object store answers."""


class RequestCounters:
    """The requests of one API in one version."""

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

    __slots__ = ("active", "handshakes_failed", "left_at", "refused")

    def __init__(self, now: float = 0.0) -> None:
        self.active = 0
        self.left_at = now
        """When somebody left who had asked for something; before that, when all began."""
        self.refused = 0
        self.handshakes_failed = 0


class SecurityCounters:
    """Who was let in, and who was not."""

    __slots__ = ("denied", "logins", "throttled")

    def __init__(self) -> None:
        self.denied = 0
        """Requests for something that the client may not do, counted by what they named."""
        self.logins: dict[tuple[str, bool], int] = {}
        """Attempts to log in, by mechanism, and by whether they succeeded."""
        self.throttled: dict[str, int] = {}
        """Answers that told a client to slow down, by the quota that was used up."""

    def logged_in(self, mechanism: str, *, succeeded: bool) -> None:
        kind = (mechanism, succeeded)
        self.logins[kind] = self.logins.get(kind, 0) + 1


class PartitionCounters:
    """What happens to one partition. Whoever serves it keeps this and moves the numbers."""

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
    """How long the clients of one topic wait."""

    __slots__ = ("fetch_seconds", "produce_seconds")

    def __init__(self) -> None:
        self.produce_seconds: dict[int, Histogram] = {}
        """By the acks that were asked for."""
        self.fetch_seconds: dict[bool, Histogram] = {}
        """By whether the object store was spared."""

    def produced(self, acks: int, seconds: float) -> None:
        found = self.produce_seconds.get(acks)
        if found is None:
            found = self.produce_seconds[acks] = Histogram(REQUEST_SECONDS_BOUNDS)
        found.observe(seconds)

    def fetched(self, cache_hit: bool, seconds: float) -> None:
        found = self.fetch_seconds.get(cache_hit)
        if found is None:
            found = self.fetch_seconds[cache_hit] = Histogram(REQUEST_SECONDS_BOUNDS)
        found.observe(seconds)


class OperationCounters:
    """One kind of request to the object store."""

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
    """What happens to one consumer group."""

    __slots__ = ("commits", "rebalances")

    def __init__(self) -> None:
        self.rebalances = 0
        self.commits = 0


class StoreHealth:
    """What the broker thinks of the object store."""

    __slots__ = ("error_rate", "state")

    STATES: Final = ("healthy", "degraded", "unavailable")

    def __init__(self) -> None:
        self.state: str = self.STATES[0]
        self.error_rate = 0.0


class LogCounters:
    """Records on their way from memory to the object store, over all partitions."""

    __slots__ = (
        "cache_bytes",
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
        """In memory only."""
        self.wal_puts = 0
        self.wal_bytes = 0
        self.wal_retries = 0
        self.wal_objects = 0
        """Written, and not yet replaced by segments."""
        self.tail_bytes = 0
        """Kept in memory for readers, because no segment holds them yet."""
        self.segments_rolled = 0
        self.segment_bytes_rolled = 0
        self.cache_bytes = 0
        """Blocks of segments in the cache."""


class ClusterStatus(NamedTuple):
    """A broker's place in the cluster."""

    brokers: int = 0
    """That are alive, as far as this one knows."""
    is_controller: bool = False
    lease_is_valid: bool = False
    """Whether its lease holds, so that it serves."""
    partitions: int = 0
    """That it serves; as the shards of groups."""
    shards: int = 0


class Counters:
    """Everything that one process counts.

    What is asked for by name is made when it is first asked for; whoever moves its numbers keeps
    it, so that names are looked up once. Series come and go with what they are about: a partition
    that is forgotten is counted no more.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self.timer = timer
        self.started = timer()
        self.connections = ConnectionCounters(self.started)
        self.access = SecurityCounters()
        self.log = LogCounters()
        self.store_health = StoreHealth()
        self.event_loop_lag_seconds = Histogram(REQUEST_SECONDS_BOUNDS)
        self.by_request: dict[tuple[str, int], RequestCounters] = {}
        self.by_api: dict[str, Histogram] = {}
        self.by_partition: dict[tuple[str, int], PartitionCounters] = {}
        self.by_topic: dict[str, TopicLatencies] = {}
        self.by_operation: dict[str, OperationCounters] = {}
        self.by_group: dict[str, GroupCounters] = {}
        self.group_states: Callable[[], Mapping[str, int]] = dict
        """How many groups are in which state; asked when a scrape comes."""
        self.group_lags: Callable[[], Iterable[tuple[str, str, int, int]]] = tuple
        """Group, topic, partition, and how many records are still to be read; the same."""
        self.buffered_bytes: Callable[[], Iterable[tuple[str, int, int]]] = tuple
        """Topic, partition, and how many bytes of it are not durable yet; the same."""
        self.stored_bytes: Callable[[], Iterable[tuple[str, int, int]]] = tuple
        """Topic, partition, and how many bytes are kept of those served here; the same."""
        self.metadata_writes: Callable[[], int] = int
        """How many transactions the groups have written; the same."""
        self.cluster: Callable[[], ClusterStatus] = ClusterStatus
        """Where this broker stands; the same."""
        self._rates: dict[str, Rate] = {}

    def requests(self, api: str, version: int) -> RequestCounters:
        found = self.by_request.get((api, version))
        if found is None:
            seconds = self.by_api.setdefault(api, Histogram(REQUEST_SECONDS_BOUNDS))
            found = self.by_request[api, version] = RequestCounters(seconds)
        return found

    def partition(self, topic: str, partition: int) -> PartitionCounters:
        found = self.by_partition.get((topic, partition))
        if found is None:
            found = self.by_partition[topic, partition] = PartitionCounters()
        return found

    def topic(self, topic: str) -> TopicLatencies:
        found = self.by_topic.get(topic)
        if found is None:
            found = self.by_topic[topic] = TopicLatencies()
        return found

    def operation(self, operation: str) -> OperationCounters:
        """One kind of request to the object store: `put`, `get`, `list`, ..."""
        found = self.by_operation.get(operation)
        if found is None:
            found = self.by_operation[operation] = OperationCounters()
        return found

    def group(self, group_id: str) -> GroupCounters:
        found = self.by_group.get(group_id)
        if found is None:
            found = self.by_group[group_id] = GroupCounters()
        return found

    def forget_group(self, group_id: str) -> None:
        self.by_group.pop(group_id, None)

    def forget_partition(self, topic: str, partition: int) -> None:
        """Count a partition no more: it is gone, or somebody else's."""
        self.by_partition.pop((topic, partition), None)

    def forget_topic(self, topic: str) -> None:
        self.by_topic.pop(topic, None)
        for key in [key for key in self.by_partition if key[0] == topic]:
            del self.by_partition[key]

    def idle_seconds(self) -> float:
        """How long nobody has been there; who only looks whether the door opens does not count."""
        return 0.0 if self.connections.active else self.timer() - self.connections.left_at

    def total(self, api: str) -> int:
        """How many requests of an API there were, in all its versions."""
        return sum(found.total for (name, _), found in self.by_request.items() if name == api)

    def per_second(self, api: str) -> float:
        """How many of them come in a second."""
        rate = self._rates.setdefault(api, Rate(self.started))
        return rate.per_second(self.timer(), self.total(api))
