"""The bucket dashboard: latency, errors, requests and cost.

Dollars are the list prices of S3 (see `admin.cluster.cost`), whatever the object store is. Another
store has other prices, but the same drivers of cost.
"""

from collections.abc import Iterable
from typing import Final

from generators.monitoring.dashboards.panels import (
    CLUSTER_VARIABLES,
    Dashboard,
    Panel,
    PanelType,
    Query,
    Row,
    Unit,
    thresholds,
    time_series,
)
from generators.monitoring.promql import (
    equals,
    histogram_quantile,
    in_cluster,
    matches,
    max_by,
    or_zero,
    rate,
    sum_by,
    topk,
)
from kafscale.admin.cluster.cost import (
    CHARGED_AS_GET,
    CHARGED_AS_PUT,
    DAY_S,
    GB,
    MONTH_DAYS,
    Prices,
)

_OPERATIONS: Final = "kafscale_s3_operations_total"
_PRICES: Final = Prices()
_HOUR: Final = "1h"
"""The range of rates for cost."""


def _requests_per_day(operations: Iterable[str]) -> str:
    """Return billed requests per day, including retries, from the rate of the last hour."""
    pattern = "|".join(operations)
    requests = sum_by(rate(in_cluster(_OPERATIONS, matches("operation", pattern)), _HOUR))
    return f"{DAY_S} * {or_zero(requests)}"


def _dollars(requests_per_day: str, price_per_thousand: float) -> str:
    return f"{requests_per_day} / 1000 * {price_per_thousand}"


PUTS_PER_DAY: Final = _requests_per_day(CHARGED_AS_PUT)
GETS_PER_DAY: Final = _requests_per_day(CHARGED_AS_GET)
PUT_DOLLARS: Final = _dollars(PUTS_PER_DAY, _PRICES.put_thousand)
GET_DOLLARS: Final = _dollars(GETS_PER_DAY, _PRICES.get_thousand)
_STORED_BYTES: Final = sum_by(in_cluster("kafscale_stored_bytes"))
STORED_DOLLARS: Final = f"{_STORED_BYTES} / {GB} * {_PRICES.storage_gb_month} / {MONTH_DAYS}"
DOLLARS_PER_DAY: Final = f"({PUT_DOLLARS}) + ({GET_DOLLARS}) + ({STORED_DOLLARS})"

_REQUESTS: Final = Row(
    "Latency and errors",
    (
        time_series(
            "Latency (p50)",
            "Median latency by operation.",
            Unit.SECONDS,
            Query(
                histogram_quantile(
                    0.5, in_cluster("kafscale_s3_latency_seconds_bucket"), "operation"
                ),
                "{{operation}}",
            ),
        ),
        Panel(
            title="Latency (p99)",
            description="99th percentile of the latency by operation.",
            unit=Unit.SECONDS,
            thresholds=thresholds(0.5, 3),
            queries=(
                Query(
                    histogram_quantile(
                        0.99, in_cluster("kafscale_s3_latency_seconds_bucket"), "operation"
                    ),
                    "{{operation}}",
                ),
            ),
        ),
        Panel(
            title="Error rate",
            description="Share of recent requests that failed, by broker; from 20 % on the "
            "bucket is "
            "degraded.",
            unit=Unit.PERCENT,
            thresholds=thresholds(0.05, 0.2),
            queries=(Query(in_cluster("kafscale_s3_error_rate"), "{{pod}}"),),
        ),
        time_series(
            "Requests",
            "Requests by operation.",
            Unit.REQUESTS_PER_SECOND,
            Query(sum_by(rate(in_cluster(_OPERATIONS)), "operation"), "{{operation}}"),
        ),
        time_series(
            "Failed requests",
            "Failed requests by operation; brokers retry them.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                sum_by(rate(in_cluster(_OPERATIONS, equals("status", "error"))), "operation"),
                "{{operation}}",
            ),
        ),
        time_series(
            "Health",
            "1 for the health states that brokers report.",
            Unit.COUNT,
            Query(max_by(in_cluster("kafscale_s3_health_state"), "state"), "{{state}}"),
        ),
    ),
)

_WRITES: Final = Row(
    "Writes",
    (
        time_series(
            "WAL objects",
            "WAL objects that are not trimmed yet, by broker.",
            Unit.COUNT,
            Query(in_cluster("kafscale_wal_objects"), "{{pod}}"),
        ),
        time_series(
            "Bytes written",
            "Every record is written twice: first to the WAL, later to a segment.",
            Unit.BYTES_PER_SECOND,
            Query(sum_by(rate(in_cluster("kafscale_wal_bytes_total"))), "WAL"),
            Query(sum_by(rate(in_cluster("kafscale_segment_bytes_rolled_total"))), "segments"),
        ),
        time_series(
            "WAL object size",
            "Average size by broker. Small objects have low latency and high cost.",
            Unit.BYTES,
            Query(
                f"{sum_by(rate(in_cluster('kafscale_wal_bytes_total')), 'pod')}"
                f" / ({sum_by(rate(in_cluster('kafscale_wal_puts_total')), 'pod')} > 0)",
                "{{pod}}",
                may_be_empty=True,
            ),
        ),
        time_series(
            "WAL retries",
            "Retried uploads of WAL objects by broker.",
            Unit.PER_SECOND,
            Query(rate(in_cluster("kafscale_wal_retries_total")), "{{pod}}"),
        ),
        time_series(
            "Memory",
            "Tails (records that are not in segments yet) and the block cache.",
            Unit.BYTES,
            Query(sum_by(in_cluster("kafscale_tail_bytes")), "tails"),
            Query(sum_by(in_cluster("kafscale_cache_size_bytes")), "cache"),
        ),
        time_series(
            "Stored",
            "Bytes of records in segments and in the WAL.",
            Unit.BYTES,
            Query(sum_by(in_cluster("kafscale_stored_bytes")), "all topics"),
        ),
    ),
)


def _dollars_panel(title: str, description: str, expression: str) -> Panel:
    return Panel(
        title=title,
        description=description,
        type=PanelType.STAT,
        unit=Unit.DOLLARS,
        decimals=2,
        queries=(Query(expression),),
        width=6,
        height=4,
    )


_COST: Final = Row(
    "Cost at list prices",
    (
        _dollars_panel(
            "Dollars per day",
            "Requests at the rate of the last hour, and storage.",
            DOLLARS_PER_DAY,
        ),
        _dollars_panel(
            "Dollars per month",
            "30 times the dollars per day.",
            f"{MONTH_DAYS} * ({DOLLARS_PER_DAY})",
        ),
        Panel(
            title="PUTs per day",
            description="Including LISTs, which have the same price. The specification assumes a "
            "PUT per "
            "4 MB; storage.walPutsPerSecond limits them.",
            type=PanelType.STAT,
            queries=(Query(PUTS_PER_DAY),),
            width=6,
            height=4,
        ),
        Panel(
            title="GETs per day",
            description="Caused by consumers that catch up and by takeovers; consumers at the "
            "end of the "
            "log cause none.",
            type=PanelType.STAT,
            queries=(Query(GETS_PER_DAY),),
            width=6,
            height=4,
        ),
        Panel(
            title="Dollars per day by type",
            description="To save cost: fewer PUTs with higher produce latency, fewer GETs with a "
            "larger "
            "cache, less storage with a shorter retention.",
            unit=Unit.DOLLARS,
            queries=(
                Query(PUT_DOLLARS, "PUT and LIST"),
                Query(GET_DOLLARS, "GET"),
                Query(STORED_DOLLARS, "storage"),
            ),
            width=12,
        ),
        Panel(
            title="Storage cost per month by topic",
            description="The ten largest topics.",
            unit=Unit.DOLLARS,
            queries=(
                Query(
                    f"{topk(10, sum_by(in_cluster('kafscale_stored_bytes'), 'topic'))}"
                    f" / {GB} * {_PRICES.storage_gb_month}",
                    "{{topic}}",
                ),
            ),
            width=12,
            linked_dashboard="topics",
        ),
    ),
)

S3_AND_COST_DASHBOARD: Final = Dashboard(
    name="s3-and-cost",
    title="Kafscale: bucket and cost",
    description="Latency, errors, requests and cost of the object store.",
    variables=CLUSTER_VARIABLES,
    rows=(_REQUESTS, _WRITES, _COST),
)
