"""The cluster dashboard: an overview of brokers, clients and the bucket of one cluster."""

from typing import Final

from generators.monitoring.dashboards.panels import (
    CLUSTER_VARIABLES,
    Dashboard,
    Panel,
    PanelType,
    Query,
    Row,
    Threshold,
    Unit,
    stat,
    thresholds,
    time_series,
)
from generators.monitoring.promql import (
    avg_by,
    equals,
    histogram_quantile,
    in_cluster,
    max_by,
    min_by,
    rate,
    sum_by,
)

CACHE_HIT_RATE: Final = Panel(
    title="Cache Hit Rate",
    description="Share of reads that needed no request to the bucket. Low while consumers catch "
    "up.",
    type=PanelType.GAUGE,
    unit=Unit.PERCENT,
    minimum=0,
    maximum=1,
    base_colour="red",
    thresholds=(Threshold(0.5, "yellow"), Threshold(0.8, "green")),
    queries=(Query(avg_by(in_cluster("kafscale_cache_hit_rate"))),),
    width=4,
    height=4,
    linked_dashboard="topics",
)

_OVERVIEW: Final = Row(
    "Overview",
    (
        stat("Brokers", "Live brokers.", Unit.COUNT, Query(max_by(in_cluster("kafscale_brokers")))),
        stat(
            "Topics",
            "Topics of the cluster, counted by the operator.",
            Unit.COUNT,
            Query(max_by(in_cluster("kafscale_operator_topics"))),
        ),
        stat(
            "Connections",
            "Client connections of all brokers.",
            Unit.COUNT,
            Query(sum_by(in_cluster("kafscale_active_connections"))),
        ),
        stat(
            "Bucket",
            "Health of the object store, as brokers see it.",
            Unit.COUNT,
            Query(max_by(in_cluster("kafscale_s3_health_state"), "state") + " == 1", "{{state}}"),
        ),
        Panel(
            title="Newest snapshot",
            description="Age of the newest etcd snapshot.",
            type=PanelType.STAT,
            unit=Unit.SECONDS,
            thresholds=(Threshold(7200, "red"),),
            queries=(Query(min_by(in_cluster("kafscale_operator_etcd_snapshot_age_seconds"))),),
            width=4,
            height=4,
        ),
        CACHE_HIT_RATE,
    ),
)

_PRODUCERS: Final = Row(
    "Producers",
    (
        Panel(
            title="Produce Throughput",
            description="Successful produce requests by topic.",
            unit=Unit.REQUESTS_PER_SECOND,
            queries=(
                Query(
                    sum_by(
                        rate(
                            in_cluster(
                                "kafscale_produce_requests_total", equals("status", "success")
                            )
                        ),
                        "topic",
                    ),
                    "{{topic}}",
                ),
            ),
            linked_dashboard="topics",
        ),
        time_series(
            "Bytes produced",
            "Bytes of produced records by topic.",
            Unit.BYTES_PER_SECOND,
            Query(sum_by(rate(in_cluster("kafscale_produce_bytes_total")), "topic"), "{{topic}}"),
        ),
        Panel(
            title="Produce Latency (p99)",
            description="99th percentile of the time until a producer gets its response, by "
            "acks. With two "
            "PUTs per second and broker, 0.5 s is expected.",
            unit=Unit.SECONDS,
            thresholds=thresholds(1, 2.5),
            queries=(
                Query(
                    histogram_quantile(
                        0.99, in_cluster("kafscale_produce_latency_seconds_bucket"), "acks"
                    ),
                    "acks={{acks}}",
                ),
            ),
            linked_dashboard="topics",
        ),
        time_series(
            "Failed produce requests",
            "Failed produce requests by topic; 0 in a healthy cluster.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                sum_by(
                    rate(in_cluster("kafscale_produce_requests_total", equals("status", "error"))),
                    "topic",
                ),
                "{{topic}}",
            ),
        ),
        Panel(
            title="Unflushed records",
            description="Bytes in memory that are not durable yet. At storage.maxBufferBytes, by "
            "default "
            "64 MiB, producers get retriable errors.",
            unit=Unit.BYTES,
            thresholds=thresholds(0.5 * 64 * 2**20, 0.8 * 64 * 2**20),
            queries=(Query(in_cluster("kafscale_unflushed_bytes"), "{{pod}}"),),
        ),
        time_series(
            "Authentication and authorization",
            "SASL logins by result, requests denied by ACLs, and failed TLS handshakes.",
            Unit.PER_SECOND,
            Query(
                sum_by(rate(in_cluster("kafscale_logins_total")), "status"),
                "login: {{status}}",
                may_be_empty=True,
            ),
            Query(sum_by(rate(in_cluster("kafscale_authz_denied_total"))), "denied"),
            Query(sum_by(rate(in_cluster("kafscale_handshakes_failed_total"))), "handshake failed"),
        ),
    ),
)

_CONSUMERS: Final = Row(
    "Consumers",
    (
        Panel(
            title="Consumer Lag",
            description="Records that groups have not read yet.",
            queries=(
                Query(
                    sum_by(in_cluster("kafscale_consumer_lag"), "group", "topic"),
                    "{{group}} - {{topic}}",
                ),
            ),
            linked_dashboard="groups",
        ),
        time_series(
            "Bytes fetched",
            "Bytes of fetched records by topic.",
            Unit.BYTES_PER_SECOND,
            Query(sum_by(rate(in_cluster("kafscale_fetch_bytes_total")), "topic"), "{{topic}}"),
        ),
        time_series(
            "Fetch latency (p99)",
            "99th percentile of the time to read the records of a fetch, by cache hit.",
            Unit.SECONDS,
            Query(
                histogram_quantile(
                    0.99, in_cluster("kafscale_fetch_latency_seconds_bucket"), "cache_hit"
                ),
                "cache hit: {{cache_hit}}",
            ),
        ),
    ),
)

_BUCKET: Final = Row(
    "Bucket",
    (
        Panel(
            title="S3 Latency",
            description="99th percentile of the latency of the object store by operation.",
            unit=Unit.SECONDS,
            thresholds=thresholds(0.5, 3),
            queries=(
                Query(
                    histogram_quantile(
                        0.99, in_cluster("kafscale_s3_latency_seconds_bucket"), "operation"
                    ),
                    "{{operation}} p99",
                ),
            ),
            linked_dashboard="s3-and-cost",
        ),
        time_series(
            "Requests",
            "Requests to the object store by operation and result.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                sum_by(rate(in_cluster("kafscale_s3_operations_total")), "operation", "status"),
                "{{operation}}: {{status}}",
            ),
        ),
        time_series(
            "Cache",
            "Bytes of segment blocks in the memory of brokers.",
            Unit.BYTES,
            Query(in_cluster("kafscale_cache_size_bytes"), "{{pod}}"),
        ),
    ),
)

_BROKERS: Final = Row(
    "Brokers",
    (
        time_series(
            "Partitions",
            "Partitions by owner.",
            Unit.COUNT,
            Query(in_cluster("kafscale_owned_partitions"), "{{pod}}"),
        ),
        time_series(
            "Connections",
            "Client connections by broker.",
            Unit.COUNT,
            Query(in_cluster("kafscale_active_connections"), "{{pod}}"),
        ),
        time_series(
            "Produce requests",
            "Produce requests by broker: the metric of the autoscaler.",
            Unit.REQUESTS_PER_SECOND,
            Query(in_cluster("kafscale_produce_requests_per_second"), "{{pod}}"),
        ),
        time_series(
            "Requests by API",
            "Requests of all brokers by API.",
            Unit.REQUESTS_PER_SECOND,
            Query(sum_by(rate(in_cluster("kafscale_requests_total")), "api"), "{{api}}"),
        ),
        Panel(
            title="Event loop lag (p99)",
            description="99th percentile of the delay of timers in the event loop; requests are "
            "delayed "
            "as well.",
            unit=Unit.SECONDS,
            thresholds=thresholds(0.1, 0.5),
            queries=(
                Query(
                    histogram_quantile(
                        0.99, in_cluster("kafscale_event_loop_lag_seconds_bucket"), "pod"
                    ),
                    "{{pod}}",
                ),
            ),
        ),
        time_series(
            "Uptime",
            "Time since the start of each broker.",
            Unit.SECONDS,
            Query(in_cluster("kafscale_broker_uptime_seconds"), "{{pod}}"),
        ),
    ),
)

CLUSTER_DASHBOARD: Final = Dashboard(
    name="cluster",
    title="Kafscale: cluster",
    description="Brokers, clients and the bucket of one cluster.",
    variables=CLUSTER_VARIABLES,
    rows=(_OVERVIEW, _PRODUCERS, _CONSUMERS, _BUCKET, _BROKERS),
)
