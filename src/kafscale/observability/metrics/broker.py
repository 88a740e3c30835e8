"""All metrics of a broker.

docs/metrics.md is generated from these declarations, so that it matches `/metrics`. The values are
the plain numbers of `counters`, read at scrape time. The application serves `/metrics` over HTTP.
"""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Final

import kafscale
from kafscale.observability.metrics import cardinality
from kafscale.observability.metrics.clients import CLIENT_METRICS
from kafscale.observability.metrics.counters import (
    Counters,
    DatabaseSpace,
    GroupCounters,
    PartitionCounters,
)
from kafscale.observability.metrics.metric import BrokerMetric, Series, counter, gauge
from kafscale.observability.metrics.storage import STORAGE_METRICS
from kafscale.observability.metrics.transactions import TRANSACTION_METRICS

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
    """The metrics of one process; instances are independent."""

    def __init__(self, timer: Callable[[], float] = monotonic) -> None:
        super().__init__(timer)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format, as served at `/metrics`."""
        return b"".join(self.families())

    def families(self) -> Iterator[bytes]:
        """The same, one metric at a time, so that the caller can yield in between."""
        for declared in BROKER_METRICS:
            yield declared.render(self).encode()


def _partition(
    name: str, kind: str, meaning: str, read: Callable[[PartitionCounters], float]
) -> BrokerMetric:
    def series(counters: Counters) -> Series:
        for labels, partition_counters in cardinality.partitions(counters.by_partition):
            yield labels, read(partition_counters)

    return BrokerMetric(name, kind, ("topic", "partition"), meaning, series)


def _outcomes(
    name: str,
    meaning: str,
    succeeded: Callable[[PartitionCounters], int],
    failed: Callable[[PartitionCounters], int],
) -> BrokerMetric:
    def series(counters: Counters) -> Series:
        for labels, partition_counters in cardinality.partitions(counters.by_partition):
            yield (*labels, "success"), succeeded(partition_counters)
            yield (*labels, "error"), failed(partition_counters)

    return BrokerMetric(name, "counter", ("topic", "partition", "status"), meaning, series)


def _logins(counters: Counters) -> Series:
    for (mechanism, succeeded), count in counters.access.logins.items():
        yield (mechanism, "success" if succeeded else "error"), count


def _requests(counters: Counters) -> Series:
    for (api, version), request_counters in counters.by_request.items():
        yield (api, str(version), "NONE"), request_counters.succeeded
        for error, count in request_counters.refusals.items():
            yield (api, str(version), error), count


def _produce_seconds(counters: Counters) -> Series:
    for topic, topic_counters in cardinality.topics(counters.by_topic):
        for acks, seconds in topic_counters.produce_seconds.items():
            yield (topic, str(acks)), seconds


def _fetch_seconds(counters: Counters) -> Series:
    for topic, topic_counters in cardinality.topics(counters.by_topic):
        for cache_hit, seconds in topic_counters.fetch_seconds.items():
            yield (topic, str(cache_hit).lower()), seconds


def _lags(counters: Counters) -> Series:
    series = (
        ((group, topic, str(partition)), lag)
        for group, topic, partition, lag in counters.group_lags()
    )
    return cardinality.limit_totals(series, cardinality.LAG_SERIES_MAX)


def _sizes(sizes: Iterable[tuple[str, int, int]]) -> Series:
    series = (((topic, str(partition)), size) for topic, partition, size in sizes)
    return cardinality.limit_totals(series, cardinality.PARTITION_SERIES_MAX)


def _group(name: str, meaning: str, read: Callable[[GroupCounters], float]) -> BrokerMetric:
    def series(counters: Counters) -> Series:
        return (
            (labels, read(group_counters))
            for labels, group_counters in cardinality.groups(counters.by_group)
        )

    return BrokerMetric(name, "counter", ("group",), meaning, series)


def _etcd(name: str, meaning: str, read: Callable[[DatabaseSpace], float]) -> BrokerMetric:
    def series(counters: Counters) -> Series:
        space = counters.etcd_space()
        return () if space is None else (((), read(space)),)

    return BrokerMetric(name, "gauge", (), meaning, series)


BROKER_METRICS: Final = (
    # --- the process ------------------------------------------------------------------------------
    BrokerMetric(
        "kafscale_build_info",
        "gauge",
        ("version",),
        "Always 1; the label is the version of Kafscale.",
        lambda _: (((kafscale.__version__,), 1),),
    ),
    gauge(
        "kafscale_broker_uptime_seconds",
        "Uptime of the process.",
        lambda counters: counters.timer() - counters.started,
    ),
    BrokerMetric(
        "kafscale_event_loop_lag_seconds",
        "histogram",
        (),
        "Delay of timers in the event loop, which delays everything else as well.",
        lambda counters: (((), counters.event_loop_lag_seconds),),
    ),
    # --- authentication, authorization and quotas -------------------------------------------------
    counter(
        "kafscale_handshakes_failed_total",
        "Connections closed before their first request, mostly because of failed TLS handshakes.",
        lambda counters: counters.connections.handshakes_failed,
    ),
    BrokerMetric(
        "kafscale_certificate_expiration_timestamp_seconds",
        "gauge",
        ("setting", "file"),
        "When the certificate or revocation list in a file expires, in seconds since 1970; 0 if "
        "the file cannot be read.",
        lambda counters: (
            ((setting, file), seconds) for setting, file, seconds in counters.certificates()
        ),
    ),
    counter(
        "kafscale_authz_denied_total",
        "Operations denied by authorization.",
        lambda counters: counters.access.denied,
    ),
    BrokerMetric(
        "kafscale_logins_total",
        "counter",
        ("mechanism", "status"),
        "Authentications and re-authentications.",
        _logins,
    ),
    BrokerMetric(
        "kafscale_throttled_responses_total",
        "counter",
        ("quota",),
        "Responses that throttled a client; for the quota offset_commits, commits that had to "
        "wait.",
        lambda counters: (((quota,), count) for quota, count in counters.access.throttled.items()),
    ),
    # --- clients ----------------------------------------------------------------------------------
    gauge(
        "kafscale_active_connections",
        "Open client connections.",
        lambda counters: counters.connections.active,
    ),
    gauge(
        "kafscale_idle_seconds",
        "Time since the last client disconnected; connections without a request, such as probes, "
        "do not count.",
        lambda counters: counters.idle_seconds(),
    ),
    gauge(
        "kafscale_unsent_response_bytes",
        "Responses that clients have not received yet, and fetches in progress; limited by "
        "network.maxUnsentBytes.",
        lambda counters: counters.connections.unsent_bytes(),
    ),
    counter(
        "kafscale_connections_refused_total",
        "Connections closed immediately because of a connection limit.",
        lambda counters: counters.connections.refused,
    ),
    BrokerMetric(
        "kafscale_requests_total",
        "counter",
        ("api", "version", "error"),
        "Requests by the error of the whole request; errors of single topics and partitions inside "
        "a response are not counted.",
        _requests,
    ),
    BrokerMetric(
        "kafscale_request_seconds",
        "histogram",
        ("api",),
        "Time from receiving a request until its response is ready to be sent.",
        lambda counters: (((api,), seconds) for api, seconds in counters.by_api.items()),
    ),
    gauge(
        "kafscale_produce_requests_per_second",
        "Produce requests per second, over the last minute.",
        lambda counters: counters.per_second("Produce"),
    ),
    gauge(
        "kafscale_produce_rps",
        "The same, under the name of older dashboards.",
        lambda counters: counters.per_second("Produce"),
    ),
    gauge(
        "kafscale_fetch_rps",
        "Fetch requests per second, over the last minute.",
        lambda counters: counters.per_second("Fetch"),
    ),
    BrokerMetric(
        "kafscale_admin_requests_total",
        "counter",
        ("api",),
        "Administrative requests for topics, configs and groups.",
        lambda counters: (((api,), counters.total(api)) for api in ADMIN_APIS),
    ),
    # --- topics and partitions --------------------------------------------------------------------
    _outcomes(
        "kafscale_produce_requests_total",
        "Appends to a partition, by result.",
        lambda partition: partition.produces_succeeded,
        lambda partition: partition.produces_failed,
    ),
    _outcomes(
        "kafscale_fetch_requests_total",
        "Reads of a partition, by result.",
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
        "Bytes of records sent to consumers.",
        lambda partition: partition.fetch_bytes,
    ),
    BrokerMetric(
        "kafscale_produce_latency_seconds",
        "histogram",
        ("topic", "acks"),
        "Time from receiving a produce request until its response, by acks.",
        _produce_seconds,
    ),
    BrokerMetric(
        "kafscale_fetch_latency_seconds",
        "histogram",
        ("topic", "cache_hit"),
        "Read time of a fetch, by whether it was served from memory; the wait for new records is "
        "not included.",
        _fetch_seconds,
    ),
    _partition(
        "kafscale_cache_hit_rate",
        "gauge",
        "Share of reads served without a request to the object store.",
        lambda partition: partition.cache_hit_rate,
    ),
    BrokerMetric(
        "kafscale_buffer_size_bytes",
        "gauge",
        ("topic", "partition"),
        "Records in memory that are not durable yet.",
        lambda counters: _sizes(counters.buffered_bytes()),
    ),
    BrokerMetric(
        "kafscale_stored_bytes",
        "gauge",
        ("topic", "partition"),
        "Bytes of a partition in segments and in the WAL, reported by its owner.",
        lambda counters: _sizes(counters.stored_bytes()),
    ),
    *CLIENT_METRICS,
    # --- consumer groups --------------------------------------------------------------------------
    BrokerMetric(
        "kafscale_consumer_lag",
        "gauge",
        ("group", "topic", "partition"),
        "Consumer lag: records between the committed offset and the end of the log.",
        _lags,
    ),
    BrokerMetric(
        "kafscale_consumer_groups",
        "gauge",
        ("state",),
        "Consumer groups by state.",
        lambda counters: (((state,), count) for state, count in counters.group_states().items()),
    ),
    _group(
        "kafscale_consumer_rebalances_total",
        "Rebalances of a group: new generations or epochs.",
        lambda group: group.rebalances,
    ),
    _group(
        "kafscale_consumer_commits_total",
        "Offset commit requests of a group.",
        lambda group: group.commits,
    ),
    counter(
        "kafscale_consumer_transactions_total",
        "Transactions of the metadata store by coordinators: batched changes of groups, committed "
        "offsets and transactional ids.",
        lambda counters: counters.metadata_writes(),
    ),
    # --- etcd -------------------------------------------------------------------------------------
    _etcd(
        "kafscale_etcd_database_used_bytes",
        "Used part of the fullest database of etcd, with its history; offset commits are throttled "
        "from 70 % of the quota on.",
        lambda space: space.used_bytes,
    ),
    _etcd(
        "kafscale_etcd_database_quota_bytes",
        "The quota of that database.",
        lambda space: space.quota_bytes,
    ),
    _etcd(
        "kafscale_etcd_no_space",
        "1 while etcd rejects all writes, because a database has reached its quota.",
        lambda space: int(space.is_full),
    ),
    # --- the cluster ------------------------------------------------------------------------------
    gauge(
        "kafscale_brokers",
        "Live brokers, as seen by this one.",
        lambda counters: counters.cluster().brokers,
    ),
    gauge(
        "kafscale_controller",
        "1 on the controller, 0 on other brokers.",
        lambda counters: int(counters.cluster().is_controller),
    ),
    gauge(
        "kafscale_lease_valid",
        "1 while the broker's lease is valid, so that it serves requests.",
        lambda counters: int(counters.cluster().lease_is_valid),
    ),
    gauge(
        "kafscale_owned_partitions",
        "Partitions that this broker owns.",
        lambda counters: counters.cluster().partitions,
    ),
    gauge(
        "kafscale_owned_shards",
        "Shards of groups and transactional ids that this broker coordinates.",
        lambda counters: counters.cluster().shards,
    ),
    gauge(
        "kafscale_wal_unknown_objects",
        "WAL objects that the controller keeps because their stream or topic is unknown here.",
        lambda counters: counters.cluster().unknown_wal_objects,
    ),
    gauge(
        "kafscale_wal_damaged_objects",
        "Damaged WAL objects in dead streams, which are copied to the quarantine.",
        lambda counters: counters.cluster().damaged_wal_objects,
    ),
    *TRANSACTION_METRICS,
    *STORAGE_METRICS,
)
