"""Every metric of Kafscale, declared once.

The law: a metric is declared here and moved somewhere; what is documented is what a scrape shows,
because `docs/metrics.md` is made from these declarations. A metric comes into this file together
with the code that moves it. What is moved are the plain numbers of `traffic`, which are read only
when a scrape comes. Serving `/metrics` over HTTP is left to the applications.
"""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Final

import kafscale
from kafscale.observability.metrics import cardinality
from kafscale.observability.metrics.counters import Counters, GroupCounters, PartitionCounters
from kafscale.observability.metrics.declaration import BrokerMetric, counter, gauge
from kafscale.observability.metrics.security import SECURITY_METRICS
from kafscale.observability.metrics.storage import STORAGE_METRICS
from kafscale.observability.metrics.text_format import Series, render

ADMIN_APIS: Final = (
    "AlterConfigs",
    "CreatePartitions",
    "CreateTopics",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeConfigs",
    "IncrementalAlterConfigs",
)


class Metrics(Counters):
    """The metrics of one process; two of these share nothing."""

    def __init__(self, timer: Callable[[], float] = monotonic) -> None:
        super().__init__(timer)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format: what `/metrics` answers."""
        return b"".join(self.families())

    def families(self) -> Iterator[bytes]:
        """The same, metric by metric, for those who have other things to do in between."""
        for declared in BROKER_METRICS:
            yield render(
                declared.name, declared.type, declared.meaning, declared.labels, declared.read(self)
            ).encode()


def _partition(
    name: str, kind: str, meaning: str, read: Callable[[PartitionCounters], float]
) -> BrokerMetric:
    def series(traffic: Counters) -> Series:
        for labels, found in cardinality.partitions(traffic.by_partition):
            yield labels, read(found)

    return BrokerMetric(name, kind, ("topic", "partition"), meaning, series)


def _outcomes(
    name: str,
    meaning: str,
    succeeded: Callable[[PartitionCounters], int],
    failed: Callable[[PartitionCounters], int],
) -> BrokerMetric:
    def series(traffic: Counters) -> Series:
        for labels, found in cardinality.partitions(traffic.by_partition):
            yield (*labels, "success"), succeeded(found)
            yield (*labels, "error"), failed(found)

    return BrokerMetric(name, "counter", ("topic", "partition", "status"), meaning, series)


def _requests(traffic: Counters) -> Series:
    for (api, version), found in traffic.by_request.items():
        yield (api, str(version), "NONE"), found.succeeded
        for error, count in found.refusals.items():
            yield (api, str(version), error), count


def _produce_seconds(traffic: Counters) -> Series:
    for topic, found in cardinality.topics(traffic.by_topic):
        for acks, seconds in found.produce_seconds.items():
            yield (topic, str(acks)), seconds


def _fetch_seconds(traffic: Counters) -> Series:
    for topic, found in cardinality.topics(traffic.by_topic):
        for cache_hit, seconds in found.fetch_seconds.items():
            yield (topic, str(cache_hit).lower()), seconds


def _lags(traffic: Counters) -> Series:
    series = (
        ((group, topic, str(partition)), lag)
        for group, topic, partition, lag in traffic.group_lags()
    )
    return cardinality.limit_totals(series, cardinality.LAG_SERIES_MAX)


def _sizes(found: Iterable[tuple[str, int, int]]) -> Series:
    series = (((topic, str(partition)), size) for topic, partition, size in found)
    return cardinality.limit_totals(series, cardinality.PARTITION_SERIES_MAX)


def _group(name: str, meaning: str, read: Callable[[GroupCounters], float]) -> BrokerMetric:
    def series(traffic: Counters) -> Series:
        return ((labels, read(found)) for labels, found in cardinality.groups(traffic.by_group))

    return BrokerMetric(name, "counter", ("group",), meaning, series)


BROKER_METRICS: Final = (
    # --- the process ------------------------------------------------------------------------------
    BrokerMetric(
        "kafscale_build_info",
        "gauge",
        ("version",),
        "Always 1; its label tells which version of Kafscale is running.",
        lambda _: (((kafscale.__version__,), 1),),
    ),
    gauge(
        "kafscale_broker_uptime_seconds",
        "How long this process has been running.",
        lambda traffic: traffic.timer() - traffic.started,
    ),
    BrokerMetric(
        "kafscale_event_loop_lag_seconds",
        "histogram",
        (),
        "How late a timer runs that is due: what everything else has to wait as well.",
        lambda traffic: (((), traffic.event_loop_lag_seconds),),
    ),
    *SECURITY_METRICS,
    # --- clients ----------------------------------------------------------------------------------
    gauge(
        "kafscale_active_connections",
        "Clients that are connected.",
        lambda traffic: traffic.connections.active,
    ),
    gauge(
        "kafscale_idle_seconds",
        "How long no client has been connected; one that connects and asks for nothing, such as a "
        "probe, does not count once it is gone.",
        lambda traffic: traffic.idle_seconds(),
    ),
    counter(
        "kafscale_connections_refused_total",
        "Connections closed as they arrived, because there were too many.",
        lambda traffic: traffic.connections.refused,
    ),
    BrokerMetric(
        "kafscale_requests_total",
        "counter",
        ("api", "version", "error"),
        "Requests, by the error that the whole request was refused with; errors of single topics "
        "and partitions stand inside of an answer and are not told here.",
        _requests,
    ),
    BrokerMetric(
        "kafscale_request_seconds",
        "histogram",
        ("api",),
        "The time from reading a request until its answer is ready to be sent.",
        lambda traffic: (((api,), seconds) for api, seconds in traffic.by_api.items()),
    ),
    gauge(
        "kafscale_produce_requests_per_second",
        "Produce requests per second, over the last minute.",
        lambda traffic: traffic.per_second("Produce"),
    ),
    gauge(
        "kafscale_produce_rps",
        "The same, under the name that older dashboards know.",
        lambda traffic: traffic.per_second("Produce"),
    ),
    gauge(
        "kafscale_fetch_rps",
        "Fetch requests per second, over the last minute.",
        lambda traffic: traffic.per_second("Fetch"),
    ),
    BrokerMetric(
        "kafscale_admin_requests_total",
        "counter",
        ("api",),
        "Requests that look after topics, configurations and groups.",
        lambda traffic: (((api,), traffic.total(api)) for api in ADMIN_APIS),
    ),
    # --- topics and partitions --------------------------------------------------------------------
    _outcomes(
        "kafscale_produce_requests_total",
        "Appends that were asked for, by how they ended.",
        lambda partition: partition.produces_succeeded,
        lambda partition: partition.produces_failed,
    ),
    _outcomes(
        "kafscale_fetch_requests_total",
        "Reads that were asked for, by how they ended.",
        lambda partition: partition.fetches_succeeded,
        lambda partition: partition.fetches_failed,
    ),
    _partition(
        "kafscale_produce_bytes_total",
        "counter",
        "Bytes of records appended.",
        lambda partition: partition.produce_bytes,
    ),
    _partition(
        "kafscale_fetch_bytes_total",
        "counter",
        "Bytes of records sent to readers.",
        lambda partition: partition.fetch_bytes,
    ),
    BrokerMetric(
        "kafscale_produce_latency_seconds",
        "histogram",
        ("topic", "acks"),
        "The time from reading a produce request until its answer, by the acks asked for.",
        _produce_seconds,
    ),
    BrokerMetric(
        "kafscale_fetch_latency_seconds",
        "histogram",
        ("topic", "cache_hit"),
        "The time that reading took for a fetch, by whether the object store was spared; waiting "
        "for records to come is not part of it.",
        _fetch_seconds,
    ),
    _partition(
        "kafscale_cache_hit_rate",
        "gauge",
        "The share of reads that spared the object store.",
        lambda partition: partition.cache_hit_rate,
    ),
    BrokerMetric(
        "kafscale_buffer_size_bytes",
        "gauge",
        ("topic", "partition"),
        "Records in memory that are not durable yet.",
        lambda traffic: _sizes(traffic.buffered_bytes()),
    ),
    BrokerMetric(
        "kafscale_stored_bytes",
        "gauge",
        ("topic", "partition"),
        "Bytes of records that a partition keeps, in segments and in the WAL, told by its owner.",
        lambda traffic: _sizes(traffic.stored_bytes()),
    ),
    # --- consumer groups --------------------------------------------------------------------------
    BrokerMetric(
        "kafscale_consumer_lag",
        "gauge",
        ("group", "topic", "partition"),
        "Records that a group has yet to read, counted from what it has committed.",
        _lags,
    ),
    BrokerMetric(
        "kafscale_consumer_groups",
        "gauge",
        ("state",),
        "Consumer groups, by the state that they are in.",
        lambda traffic: (((state,), count) for state, count in traffic.group_states().items()),
    ),
    _group(
        "kafscale_consumer_rebalances_total",
        "Generations, or epochs, that a group has begun.",
        lambda group: group.rebalances,
    ),
    _group(
        "kafscale_consumer_commits_total",
        "Commits of offsets that a group has asked for, of any number of partitions.",
        lambda group: group.commits,
    ),
    counter(
        "kafscale_consumer_transactions_total",
        "Transactions that groups have written to the metadata store, each for all that came "
        "together.",
        lambda traffic: traffic.metadata_writes(),
    ),
    # --- the cluster ------------------------------------------------------------------------------
    gauge(
        "kafscale_brokers",
        "Brokers that are alive, as far as this one knows.",
        lambda traffic: traffic.cluster().brokers,
    ),
    gauge(
        "kafscale_controller",
        "1 on the broker that is controller, 0 on all others.",
        lambda traffic: int(traffic.cluster().is_controller),
    ),
    gauge(
        "kafscale_lease_valid",
        "1 while the metadata store has confirmed this broker's lease, so that it serves.",
        lambda traffic: int(traffic.cluster().lease_is_valid),
    ),
    gauge(
        "kafscale_owned_partitions",
        "Partitions that this broker serves.",
        lambda traffic: traffic.cluster().partitions,
    ),
    gauge(
        "kafscale_owned_shards",
        "Shards of consumer groups that this broker answers for.",
        lambda traffic: traffic.cluster().shards,
    ),
    *STORAGE_METRICS,
)
