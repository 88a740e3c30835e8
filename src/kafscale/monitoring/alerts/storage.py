"""Alerts about the bucket, and about records on their way into it.

Bounds that follow from a setting are those of its default, and the setting is named beside them.
"""

from typing import Final

from kafscale.config import Config
from kafscale.monitoring.alerts.rule import BROKER, CLUSTER, OF_CLUSTER, Alert, Group, Severity
from kafscale.monitoring.promql import equals, increase, largest, rate, series

_BUFFER_BYTES: Final = Config().storage.buffer_bytes_max

STORAGE: Final = Group(
    "kafscale-storage",
    (
        Alert(
            name="KafscaleS3Unavailable",
            severity=Severity.CRITICAL,
            measured=largest(
                series("kafscale_s3_health_state", equals("state", "unavailable")), *OF_CLUSTER
            ),
            bad="== 1",
            lasts="1m",
            summary=f"The bucket of {CLUSTER} is unavailable, and clients are refused.",
            description="Producers are told to try again, and so are readers of what is not in "
            "memory. Nothing acknowledged is lost; service resumes by itself with the bucket.",
        ),
        Alert(
            name="KafscaleS3Degraded",
            severity=Severity.WARNING,
            measured=largest(
                series("kafscale_s3_health_state", equals("state", "degraded")), *OF_CLUSTER
            ),
            bad="== 1",
            lasts="10m",
            summary=f"The bucket of {CLUSTER} is slow, or fails now and then.",
            description="Half a second on average, or a fifth of requests that fail: clients "
            "wait longer.",
        ),
        Alert(
            name="KafscaleS3Errors",
            severity=Severity.WARNING,
            measured=largest("kafscale_s3_error_rate", *OF_CLUSTER),
            bad="> 0.05",
            lasts="10m",
            summary=f"Of requests to the bucket of {CLUSTER}, "
            "{{ $value | humanizePercentage }} fail.",
            description="They are tried again, which takes time and is paid for.",
        ),
        Alert(
            name="KafscaleBufferNearlyFull",
            severity=Severity.CRITICAL,
            measured="kafscale_unflushed_bytes",
            bad=f"> 0.8 * {_BUFFER_BYTES}",
            lasts="2m",
            summary=f"{BROKER} holds {{{{ $value | humanize1024 }}}}B that are not durable yet.",
            description="Four fifths of storage.maxBufferBytes, 64Mi: at the whole of it, "
            "producers are told to try again. The bucket does not keep up.",
        ),
        Alert(
            name="KafscaleWalRetries",
            severity=Severity.WARNING,
            measured=rate("kafscale_wal_retries_total", "10m"),
            bad="> 0.05",
            lasts="10m",
            summary=f"{BROKER} has to write WAL objects again and again.",
            description="Acknowledgements come late; nothing is lost.",
        ),
        Alert(
            name="KafscaleWalBacklog",
            severity=Severity.WARNING,
            measured="min_over_time(kafscale_wal_objects[30m])",
            # A broker that has just started is not late yet.
            bad=f"> 0 and {increase('kafscale_segments_rolled_total', '30m')} == 0"
            " and kafscale_broker_uptime_seconds > 1800",
            lasts="5m",
            summary=f"{BROKER} has made no segments of its WAL for half an hour.",
            description="Records wait at most storage.maxSegmentAgeMs, 10m, for a segment. "
            "Meanwhile the WAL grows, and a takeover takes longer.",
        ),
    ),
)
