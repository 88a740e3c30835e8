"""The dashboard of the bucket: how it answers, what is asked of it, and what it charges for that.

Dollars are list prices, see `prices`, whatever the bucket really is: a store of one's own costs
something else, but the same things make it expensive.
"""

from collections.abc import Iterable
from typing import Final

from kafscale.monitoring.dashboards.panels import (
    OF_A_CLUSTER,
    Dashboard,
    Kind,
    Panel,
    Query,
    Row,
    Unit,
    lines,
    worse_above,
)
from kafscale.monitoring.promql import (
    equals,
    here,
    largest,
    matches,
    or_zero,
    quantile,
    rate,
    top,
    total,
)
from kafscale.observability.prices import (
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
"""A bill does not care for minutes."""


def _requests_a_day(operations: Iterable[str]) -> str:
    """Those that are charged, tried again or not, if a day were like the last hour."""
    pattern = "|".join(operations)
    asked = total(rate(here(_OPERATIONS, matches("operation", pattern)), _HOUR))
    return f"{DAY_S} * {or_zero(asked)}"


def _dollars(a_day: str, thousand: float) -> str:
    return f"{a_day} / 1000 * {thousand}"


PUTS_A_DAY: Final = _requests_a_day(CHARGED_AS_PUT)
GETS_A_DAY: Final = _requests_a_day(CHARGED_AS_GET)
PUT_DOLLARS: Final = _dollars(PUTS_A_DAY, _PRICES.put_thousand)
GET_DOLLARS: Final = _dollars(GETS_A_DAY, _PRICES.get_thousand)
STORED_DOLLARS: Final = (
    f"{total(here('kafscale_stored_bytes'))} / {GB} * {_PRICES.storage_gb_month} / {MONTH_DAYS}"
)
DOLLARS_A_DAY: Final = f"({PUT_DOLLARS}) + ({GET_DOLLARS}) + ({STORED_DOLLARS})"

_ANSWERS: Final = Row(
    "How it answers",
    (
        lines(
            "Latency (p50)",
            "How long half of the requests take at most.",
            Unit.SECONDS,
            Query(
                quantile(0.5, here("kafscale_s3_latency_seconds_bucket"), "operation"),
                "{{operation}}",
            ),
        ),
        Panel(
            title="Latency (p99)",
            about="How long one request in a hundred takes.",
            unit=Unit.SECONDS,
            thresholds=worse_above(0.5, 3),
            queries=(
                Query(
                    quantile(0.99, here("kafscale_s3_latency_seconds_bucket"), "operation"),
                    "{{operation}}",
                ),
            ),
        ),
        Panel(
            title="Error rate",
            about="The share of requests that failed lately, as each broker sees it; from a fifth "
            "on the bucket counts as degraded.",
            unit=Unit.SHARE,
            thresholds=worse_above(0.05, 0.2),
            queries=(Query(here("kafscale_s3_error_rate"), "{{pod}}"),),
        ),
        lines(
            "Requests",
            "By operation.",
            Unit.REQUESTS_PER_SECOND,
            Query(total(rate(here(_OPERATIONS)), "operation"), "{{operation}}"),
        ),
        lines(
            "Requests that failed",
            "By operation; they are tried again.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                total(rate(here(_OPERATIONS, equals("status", "error"))), "operation"),
                "{{operation}}",
            ),
        ),
        lines(
            "Health",
            "1 for the state that any broker sees the bucket in.",
            Unit.COUNT,
            Query(largest(here("kafscale_s3_health_state"), "state"), "{{state}}"),
        ),
    ),
)

_WAY_IN: Final = Row(
    "The way in",
    (
        lines(
            "WAL objects",
            "Those that segments have not replaced yet.",
            Unit.COUNT,
            Query(here("kafscale_wal_objects"), "{{pod}}"),
        ),
        lines(
            "Bytes written",
            "Every record is written twice: to the WAL at once, and to a segment later.",
            Unit.BYTES_PER_SECOND,
            Query(total(rate(here("kafscale_wal_bytes_total"))), "WAL"),
            Query(total(rate(here("kafscale_segment_bytes_rolled_total"))), "segments"),
        ),
        lines(
            "Size of a WAL object",
            "On average. Small ones are answered soon and cost most.",
            Unit.BYTES,
            Query(
                f"{total(rate(here('kafscale_wal_bytes_total')), 'pod')}"
                f" / ({total(rate(here('kafscale_wal_puts_total')), 'pod')} > 0)",
                "{{pod}}",
                may_be_empty=True,
            ),
        ),
        lines(
            "WAL objects written again",
            "Attempts that failed and were repeated.",
            Unit.PER_SECOND,
            Query(rate(here("kafscale_wal_retries_total")), "{{pod}}"),
        ),
        lines(
            "In memory",
            "Records kept for readers until a segment holds them, and blocks of segments.",
            Unit.BYTES,
            Query(total(here("kafscale_tail_bytes")), "tails"),
            Query(total(here("kafscale_cache_size_bytes")), "cache"),
        ),
        lines(
            "Stored",
            "Bytes of records in segments and in the WAL.",
            Unit.BYTES,
            Query(total(here("kafscale_stored_bytes")), "all topics"),
        ),
    ),
)


def _dollars_now(title: str, about: str, expression: str) -> Panel:
    return Panel(
        title=title,
        about=about,
        kind=Kind.NUMBER,
        unit=Unit.DOLLARS,
        decimals=2,
        queries=(Query(expression),),
        width=6,
        height=4,
    )


_COST: Final = Row(
    "What it costs, at list prices",
    (
        _dollars_now(
            "Dollars a day",
            "Requests of the last hour, for a day, and what is stored.",
            DOLLARS_A_DAY,
        ),
        _dollars_now(
            "Dollars a month", "The same, thirty times.", f"{MONTH_DAYS} * ({DOLLARS_A_DAY})"
        ),
        Panel(
            title="PUTs a day",
            about="With listings, which are charged like them. The specification reckons with a "
            "PUT per 4 MB; storage.walPutsPerSecond bounds them.",
            kind=Kind.NUMBER,
            queries=(Query(PUTS_A_DAY),),
            width=6,
            height=4,
        ),
        Panel(
            title="GETs a day",
            about="Readers that catch up, and brokers that take over; whoever follows the end of "
            "a log costs none.",
            kind=Kind.NUMBER,
            queries=(Query(GETS_A_DAY),),
            width=6,
            height=4,
        ),
        Panel(
            title="Dollars a day, by what for",
            about="Where saving begins: PUTs by a longer wait of producers, GETs by a larger "
            "cache, storage by retention.",
            unit=Unit.DOLLARS,
            queries=(
                Query(PUT_DOLLARS, "PUT and LIST"),
                Query(GET_DOLLARS, "GET"),
                Query(STORED_DOLLARS, "storage"),
            ),
            width=12,
        ),
        Panel(
            title="Storage a month, by topic",
            about="What the ten topics that keep most cost a month.",
            unit=Unit.DOLLARS,
            queries=(
                Query(
                    f"{top(10, total(here('kafscale_stored_bytes'), 'topic'))}"
                    f" / {GB} * {_PRICES.storage_gb_month}",
                    "{{topic}}",
                ),
            ),
            width=12,
            leads_to="topics",
        ),
    ),
)

S3_AND_COST_DASHBOARD: Final = Dashboard(
    name="s3-and-cost",
    title="Kafscale: bucket and cost",
    about="How the object store answers, what is asked of it, and what that costs on S3.",
    variables=OF_A_CLUSTER,
    rows=(_ANSWERS, _WAY_IN, _COST),
)
