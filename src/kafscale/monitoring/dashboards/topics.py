"""The dashboard of topics: what is written and read, how fast, how much is kept."""

from typing import Final

from kafscale.monitoring.dashboards.panels import (
    OF_A_CLUSTER,
    TOPIC,
    Dashboard,
    Panel,
    Query,
    Row,
    Unit,
    lines,
    worse_above,
)
from kafscale.monitoring.promql import (
    average,
    equals,
    here,
    matches,
    quantile,
    rate,
    top,
    total,
    trend,
)
from kafscale.observability.prices import DAY_S

_CHOSEN: Final = matches("topic", "$topic")
_BY_TOPIC: Final = "{{topic}}"
_STORED: Final = here("kafscale_stored_bytes", _CHOSEN)


def _failed(requests: str) -> str:
    """The share of a topic's appends, or reads, that failed; nothing where there were none."""
    failed = total(rate(here(requests, _CHOSEN, equals("status", "error"))), "topic")
    asked = total(rate(here(requests, _CHOSEN)), "topic")
    return f"{failed} / ({asked} > 0)"


_WRITING: Final = Row(
    "Writing",
    (
        lines(
            "Appends",
            "Appends that succeeded.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                total(
                    rate(
                        here(
                            "kafscale_produce_requests_total", _CHOSEN, equals("status", "success")
                        )
                    ),
                    "topic",
                ),
                _BY_TOPIC,
            ),
        ),
        lines(
            "Bytes in",
            "Bytes of records appended.",
            Unit.BYTES_PER_SECOND,
            Query(total(rate(here("kafscale_produce_bytes_total", _CHOSEN)), "topic"), _BY_TOPIC),
        ),
        Panel(
            title="Appends that failed",
            about="The share of appends that were refused, or were not durable in time.",
            unit=Unit.SHARE,
            thresholds=worse_above(0.01, 0.05),
            queries=(Query(_failed("kafscale_produce_requests_total"), _BY_TOPIC),),
        ),
        lines(
            "Waiting for an answer (p50)",
            "How long half of the producers wait at most.",
            Unit.SECONDS,
            Query(
                quantile(0.5, here("kafscale_produce_latency_seconds_bucket", _CHOSEN), "topic"),
                _BY_TOPIC,
            ),
        ),
        Panel(
            title="Waiting for an answer (p99)",
            about="How long one producer in a hundred waits.",
            unit=Unit.SECONDS,
            thresholds=worse_above(1, 2.5),
            queries=(
                Query(
                    quantile(
                        0.99, here("kafscale_produce_latency_seconds_bucket", _CHOSEN), "topic"
                    ),
                    _BY_TOPIC,
                ),
            ),
        ),
        lines(
            "Hottest partitions",
            "The ten partitions that most bytes are written to: where a key is too common, or "
            "partitions are too few.",
            Unit.BYTES_PER_SECOND,
            Query(
                top(
                    10,
                    total(
                        rate(here("kafscale_produce_bytes_total", _CHOSEN)), "topic", "partition"
                    ),
                ),
                "{{topic}}/{{partition}}",
            ),
        ),
    ),
)

_READING: Final = Row(
    "Reading",
    (
        lines(
            "Reads",
            "Reads that succeeded.",
            Unit.REQUESTS_PER_SECOND,
            Query(
                total(
                    rate(
                        here("kafscale_fetch_requests_total", _CHOSEN, equals("status", "success"))
                    ),
                    "topic",
                ),
                _BY_TOPIC,
            ),
        ),
        lines(
            "Bytes out",
            "Bytes of records sent to readers.",
            Unit.BYTES_PER_SECOND,
            Query(total(rate(here("kafscale_fetch_bytes_total", _CHOSEN)), "topic"), _BY_TOPIC),
        ),
        Panel(
            title="Reads that failed",
            about="The share of reads that were refused.",
            unit=Unit.SHARE,
            thresholds=worse_above(0.01, 0.05),
            queries=(Query(_failed("kafscale_fetch_requests_total"), _BY_TOPIC),),
        ),
        lines(
            "Reading (p99)",
            "How long reading takes for one fetch in a hundred; waiting for records to come is "
            "not part of it.",
            Unit.SECONDS,
            Query(
                quantile(0.99, here("kafscale_fetch_latency_seconds_bucket", _CHOSEN), "topic"),
                _BY_TOPIC,
            ),
        ),
        Panel(
            title="Cache hit rate",
            about="The share of reads that spared the bucket, since the brokers started.",
            unit=Unit.SHARE,
            minimum=0,
            maximum=1,
            queries=(Query(average(here("kafscale_cache_hit_rate", _CHOSEN), "topic"), _BY_TOPIC),),
        ),
        Panel(
            title="Lag",
            about="Records that all groups together have yet to read.",
            queries=(
                Query(
                    total(here("kafscale_consumer_lag", _CHOSEN), "topic"),
                    _BY_TOPIC,
                    may_be_empty=True,
                ),
            ),
            leads_to="groups",
        ),
    ),
)

_KEPT: Final = Row(
    "Kept",
    (
        Panel(
            title="Stored",
            about="Bytes of records in segments and in the WAL: what retention has left.",
            unit=Unit.BYTES,
            queries=(Query(total(_STORED, "topic"), _BY_TOPIC),),
            width=12,
            leads_to="s3-and-cost",
        ),
        Panel(
            title="Growth in a day",
            about="How much more is kept than a day ago, if it goes on like the last hour.",
            unit=Unit.BYTES,
            queries=(Query(f"{DAY_S} * {total(trend(_STORED, '1h'), 'topic')}", _BY_TOPIC),),
            width=12,
        ),
    ),
)

TOPICS_DASHBOARD: Final = Dashboard(
    name="topics",
    title="Kafscale: topics",
    about="What is written to topics and read from them, how fast, and how much they keep.",
    variables=(*OF_A_CLUSTER, TOPIC),
    rows=(_WRITING, _READING, _KEPT),
)
