"""The topics dashboard: produce and fetch traffic, latency and storage."""

from typing import Final

from generators.monitoring.dashboards.panels import (
    CLUSTER_VARIABLES,
    TOPIC,
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    thresholds,
    time_series,
)
from generators.monitoring.promql import (
    avg_by,
    deriv,
    equals,
    histogram_quantile,
    in_cluster,
    matches,
    rate,
    sum_by,
    topk,
)
from kafscale.admin.cluster.cost import DAY_S

_SELECTED: Final = matches("topic", "$topic")
_TOPIC_LEGEND: Final = "{{topic}}"
_STORED: Final = in_cluster("kafscale_stored_bytes", _SELECTED)


def _failed(requests: str) -> str:
    """Return the share of requests to a topic that failed; empty if there were none."""
    failed = sum_by(rate(in_cluster(requests, _SELECTED, equals("status", "error"))), "topic")
    all_requests = sum_by(rate(in_cluster(requests, _SELECTED)), "topic")
    return f"{failed} / ({all_requests} > 0)"


_PRODUCE: Final = Row(
    "Produce",
    (
        time_series(
            "Produce requests",
            "Successful produce requests.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                sum_by(
                    rate(
                        in_cluster(
                            "kafscale_produce_requests_total",
                            _SELECTED,
                            equals("status", "success"),
                        )
                    ),
                    "topic",
                ),
                _TOPIC_LEGEND,
            ),
        ),
        time_series(
            "Bytes in",
            "Bytes of produced records.",
            Unit.BYTES_PER_SECOND,
            Query(
                sum_by(rate(in_cluster("kafscale_produce_bytes_total", _SELECTED)), "topic"),
                _TOPIC_LEGEND,
            ),
        ),
        Panel(
            title="Failed produce requests",
            description="Share of produce requests that were rejected or timed out.",
            unit=Unit.PERCENT,
            thresholds=thresholds(0.01, 0.05),
            queries=(Query(_failed("kafscale_produce_requests_total"), _TOPIC_LEGEND),),
        ),
        time_series(
            "Produce latency (p50)",
            "Median time until a producer gets its response.",
            Unit.SECONDS,
            Query(
                histogram_quantile(
                    0.5, in_cluster("kafscale_produce_latency_seconds_bucket", _SELECTED), "topic"
                ),
                _TOPIC_LEGEND,
            ),
        ),
        Panel(
            title="Produce latency (p99)",
            description="99th percentile of the time until a producer gets its response.",
            unit=Unit.SECONDS,
            thresholds=thresholds(1, 2.5),
            queries=(
                Query(
                    histogram_quantile(
                        0.99,
                        in_cluster("kafscale_produce_latency_seconds_bucket", _SELECTED),
                        "topic",
                    ),
                    _TOPIC_LEGEND,
                ),
            ),
        ),
        time_series(
            "Hottest partitions",
            "The ten partitions with the most incoming bytes. They suggest a hot key or too few "
            "partitions.",
            Unit.BYTES_PER_SECOND,
            Query(
                topk(
                    10,
                    sum_by(
                        rate(in_cluster("kafscale_produce_bytes_total", _SELECTED)),
                        "topic",
                        "partition",
                    ),
                ),
                "{{topic}}/{{partition}}",
            ),
        ),
    ),
)

_FETCH: Final = Row(
    "Fetch",
    (
        time_series(
            "Fetch requests",
            "Successful fetch requests.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                sum_by(
                    rate(
                        in_cluster(
                            "kafscale_fetch_requests_total", _SELECTED, equals("status", "success")
                        )
                    ),
                    "topic",
                ),
                _TOPIC_LEGEND,
            ),
        ),
        time_series(
            "Bytes out",
            "Bytes of fetched records.",
            Unit.BYTES_PER_SECOND,
            Query(
                sum_by(rate(in_cluster("kafscale_fetch_bytes_total", _SELECTED)), "topic"),
                _TOPIC_LEGEND,
            ),
        ),
        Panel(
            title="Failed fetch requests",
            description="Share of fetch requests that were rejected.",
            unit=Unit.PERCENT,
            thresholds=thresholds(0.01, 0.05),
            queries=(Query(_failed("kafscale_fetch_requests_total"), _TOPIC_LEGEND),),
        ),
        time_series(
            "Fetch latency (p99)",
            "99th percentile of the time to read the records of a fetch, without the wait for "
            "new records.",
            Unit.SECONDS,
            Query(
                histogram_quantile(
                    0.99, in_cluster("kafscale_fetch_latency_seconds_bucket", _SELECTED), "topic"
                ),
                _TOPIC_LEGEND,
            ),
        ),
        Panel(
            title="Cache hit rate",
            description="Share of reads that needed no request to the bucket since the start of "
            "brokers.",
            unit=Unit.PERCENT,
            minimum=0,
            maximum=1,
            queries=(
                Query(
                    avg_by(in_cluster("kafscale_cache_hit_rate", _SELECTED), "topic"), _TOPIC_LEGEND
                ),
            ),
        ),
        Panel(
            title="Lag",
            description="Sum of the lags of all groups.",
            queries=(
                Query(
                    sum_by(in_cluster("kafscale_consumer_lag", _SELECTED), "topic"),
                    _TOPIC_LEGEND,
                    may_be_empty=True,
                ),
            ),
            linked_dashboard="groups",
        ),
    ),
)

_STORAGE: Final = Row(
    "Storage",
    (
        Panel(
            title="Stored",
            description="Bytes of records in segments and in the WAL.",
            unit=Unit.BYTES,
            queries=(Query(sum_by(_STORED, "topic"), _TOPIC_LEGEND),),
            width=12,
            linked_dashboard="s3-and-cost",
        ),
        Panel(
            title="Growth per day",
            description="Change of stored bytes per day, at the rate of the last hour.",
            unit=Unit.BYTES,
            queries=(Query(f"{DAY_S} * {sum_by(deriv(_STORED, '1h'), 'topic')}", _TOPIC_LEGEND),),
            width=12,
        ),
    ),
)

TOPICS_DASHBOARD: Final = Dashboard(
    name="topics",
    title="Kafscale: topics",
    description="Produce and fetch traffic, latency and storage of topics.",
    variables=(*CLUSTER_VARIABLES, TOPIC),
    rows=(_PRODUCE, _FETCH, _STORAGE),
)
