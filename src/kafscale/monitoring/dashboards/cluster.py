"""The dashboard to begin with: brokers, clients and the bucket of one cluster at a glance."""

from typing import Final

from kafscale.monitoring.dashboards.panels import (
    OF_A_CLUSTER,
    Dashboard,
    Kind,
    Panel,
    Query,
    Row,
    Threshold,
    Unit,
    lines,
    number,
    worse_above,
)
from kafscale.monitoring.promql import (
    average,
    equals,
    here,
    largest,
    quantile,
    rate,
    smallest,
    total,
)

CACHE_HIT_RATE: Final = Panel(
    title="Cache Hit Rate",
    about="The share of reads that spared the bucket. Low while consumers catch up.",
    kind=Kind.DIAL,
    unit=Unit.SHARE,
    minimum=0,
    maximum=1,
    base_colour="red",
    thresholds=(Threshold(0.5, "yellow"), Threshold(0.8, "green")),
    queries=(Query(average(here("kafscale_cache_hit_rate"))),),
    width=4,
    height=4,
    leads_to="topics",
)

_OVERVIEW: Final = Row(
    "Overview",
    (
        number(
            "Brokers",
            "Brokers that are alive.",
            Unit.COUNT,
            Query(largest(here("kafscale_brokers"))),
        ),
        number(
            "Topics",
            "Topics of the cluster, as the operator counts them.",
            Unit.COUNT,
            Query(largest(here("kafscale_operator_topics"))),
        ),
        number(
            "Connections",
            "Clients that are connected to any broker.",
            Unit.COUNT,
            Query(total(here("kafscale_active_connections"))),
        ),
        number(
            "Bucket",
            "The states that brokers see the object store in.",
            Unit.COUNT,
            Query(largest(here("kafscale_s3_health_state"), "state") + " == 1", "{{state}}"),
        ),
        Panel(
            title="Newest snapshot",
            about="How old the newest backup of etcd is.",
            kind=Kind.NUMBER,
            unit=Unit.SECONDS,
            thresholds=(Threshold(7200, "red"),),
            queries=(Query(smallest(here("kafscale_operator_etcd_snapshot_age_seconds"))),),
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
            about="Appends that succeeded, by topic.",
            unit=Unit.REQUESTS_PER_SECOND,
            queries=(
                Query(
                    total(
                        rate(here("kafscale_produce_requests_total", equals("status", "success"))),
                        "topic",
                    ),
                    "{{topic}}",
                ),
            ),
            leads_to="topics",
        ),
        lines(
            "Bytes produced",
            "Bytes of records appended, by topic.",
            Unit.BYTES_PER_SECOND,
            Query(total(rate(here("kafscale_produce_bytes_total")), "topic"), "{{topic}}"),
        ),
        Panel(
            title="Produce Latency (p99)",
            about="How long one producer in a hundred waits for its answer, by the acks it wants. "
            "With two PUTs a second and broker, half a second is by design.",
            unit=Unit.SECONDS,
            thresholds=worse_above(1, 2.5),
            queries=(
                Query(
                    quantile(0.99, here("kafscale_produce_latency_seconds_bucket"), "acks"),
                    "acks={{acks}}",
                ),
            ),
            leads_to="topics",
        ),
        lines(
            "Appends that failed",
            "By topic; nothing but zeros while all is well.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                total(
                    rate(here("kafscale_produce_requests_total", equals("status", "error"))),
                    "topic",
                ),
                "{{topic}}",
            ),
        ),
        Panel(
            title="Not durable yet",
            about="Records in memory only. At storage.maxBufferBytes, 64 MiB unless set otherwise, "
            "producers are told to try again.",
            unit=Unit.BYTES,
            thresholds=worse_above(0.5 * 64 * 2**20, 0.8 * 64 * 2**20),
            queries=(Query(here("kafscale_unflushed_bytes"), "{{pod}}"),),
        ),
        lines(
            "Logins and denials",
            "Who was let in, who was not, and who asked for what they may not do.",
            Unit.PER_SECOND,
            Query(
                total(rate(here("kafscale_logins_total")), "status"),
                "login: {{status}}",
                may_be_empty=True,
            ),
            Query(total(rate(here("kafscale_authz_denied_total"))), "denied"),
            Query(total(rate(here("kafscale_handshakes_failed_total"))), "handshake failed"),
        ),
    ),
)

_CONSUMERS: Final = Row(
    "Consumers",
    (
        Panel(
            title="Consumer Lag",
            about="Records that groups have yet to read.",
            queries=(
                Query(
                    total(here("kafscale_consumer_lag"), "group", "topic"), "{{group}} - {{topic}}"
                ),
            ),
            leads_to="groups",
        ),
        lines(
            "Bytes fetched",
            "Bytes of records sent to readers, by topic.",
            Unit.BYTES_PER_SECOND,
            Query(total(rate(here("kafscale_fetch_bytes_total")), "topic"), "{{topic}}"),
        ),
        lines(
            "Fetch latency (p99)",
            "How long reading takes for one fetch in a hundred, by whether the bucket was spared.",
            Unit.SECONDS,
            Query(
                quantile(0.99, here("kafscale_fetch_latency_seconds_bucket"), "cache_hit"),
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
            about="How long the object store takes to answer one request in a hundred.",
            unit=Unit.SECONDS,
            thresholds=worse_above(0.5, 3),
            queries=(
                Query(
                    quantile(0.99, here("kafscale_s3_latency_seconds_bucket"), "operation"),
                    "{{operation}} p99",
                ),
            ),
            leads_to="s3-and-cost",
        ),
        lines(
            "Requests",
            "Requests to the object store, by operation and outcome.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                total(rate(here("kafscale_s3_operations_total")), "operation", "status"),
                "{{operation}}: {{status}}",
            ),
        ),
        lines(
            "Cache",
            "Blocks of segments that brokers keep in memory.",
            Unit.BYTES,
            Query(here("kafscale_cache_size_bytes"), "{{pod}}"),
        ),
    ),
)

_BROKERS: Final = Row(
    "Brokers",
    (
        lines(
            "Partitions",
            "Partitions that each broker serves.",
            Unit.COUNT,
            Query(here("kafscale_owned_partitions"), "{{pod}}"),
        ),
        lines(
            "Connections of clients",
            "Clients that are connected to each broker.",
            Unit.COUNT,
            Query(here("kafscale_active_connections"), "{{pod}}"),
        ),
        lines(
            "Produce requests",
            "What the autoscaler goes by.",
            Unit.REQUESTS_PER_SECOND,
            Query(here("kafscale_produce_requests_per_second"), "{{pod}}"),
        ),
        lines(
            "Requests by API",
            "What clients ask for.",
            Unit.REQUESTS_PER_SECOND,
            Query(total(rate(here("kafscale_requests_total")), "api"), "{{api}}"),
        ),
        Panel(
            title="Event loop lag (p99)",
            about="How late a timer runs that is due, one time in a hundred: everything else has "
            "to wait as well.",
            unit=Unit.SECONDS,
            thresholds=worse_above(0.1, 0.5),
            queries=(
                Query(
                    quantile(0.99, here("kafscale_event_loop_lag_seconds_bucket"), "pod"), "{{pod}}"
                ),
            ),
        ),
        lines(
            "Uptime",
            "How long each broker has been running.",
            Unit.SECONDS,
            Query(here("kafscale_broker_uptime_seconds"), "{{pod}}"),
        ),
    ),
)

CLUSTER_DASHBOARD: Final = Dashboard(
    name="cluster",
    title="Kafscale: a cluster",
    about="Brokers, clients and the bucket of one cluster.",
    variables=OF_A_CLUSTER,
    rows=(_OVERVIEW, _PRODUCERS, _CONSUMERS, _BUCKET, _BROKERS),
)
