"""Alerts about the bucket, and about records that are being written to it.

Limits that depend on a setting use its default; the description names the setting.
"""

from typing import Final

from generators.monitoring.alerts.rule import (
    BROKER,
    CLUSTER,
    CLUSTER_LABELS,
    Alert,
    RuleGroup,
    Severity,
)
from generators.monitoring.promql import equals, increase, max_by, rate, selector
from kafscale.config import Config

_BUFFER_BYTES: Final = Config().storage.buffer_bytes_max

STORAGE: Final = RuleGroup(
    "kafscale-storage",
    (
        Alert(
            name="KafscaleS3Unavailable",
            severity=Severity.CRITICAL,
            measured=max_by(
                selector("kafscale_s3_health_state", equals("state", "unavailable")),
                *CLUSTER_LABELS,
            ),
            condition="== 1",
            duration="1m",
            summary=f"The bucket of {CLUSTER} is unavailable, and brokers reject requests.",
            description="Producers get retriable errors, and so do consumers of records that are "
            "not in memory. No acknowledged record is lost; brokers recover with the bucket.",
        ),
        Alert(
            name="KafscaleS3Degraded",
            severity=Severity.WARNING,
            measured=max_by(
                selector("kafscale_s3_health_state", equals("state", "degraded")), *CLUSTER_LABELS
            ),
            condition="== 1",
            duration="10m",
            summary=f"The bucket of {CLUSTER} is slow or fails intermittently.",
            description="The average latency exceeds 0.5 s, or 20 % of requests fail: client "
            "latency is higher.",
        ),
        Alert(
            name="KafscaleS3Errors",
            severity=Severity.WARNING,
            measured=max_by("kafscale_s3_error_rate", *CLUSTER_LABELS),
            condition="> 0.05",
            duration="10m",
            summary=f"{{{{ $value | humanizePercentage }}}} of requests to the bucket of "
            f"{CLUSTER} fail.",
            description="Brokers retry them, which adds latency and cost.",
        ),
        Alert(
            name="KafscaleBufferNearlyFull",
            severity=Severity.CRITICAL,
            measured="kafscale_unflushed_bytes",
            condition=f"> 0.8 * {_BUFFER_BYTES}",
            duration="2m",
            summary=f"{BROKER} has {{{{ $value | humanize1024 }}}}B of unflushed records.",
            description="They exceed 80 % of storage.maxBufferBytes (default 64Mi); at the limit, "
            "producers get retriable errors. The bucket is too slow.",
        ),
        Alert(
            name="KafscaleWalRetries",
            severity=Severity.WARNING,
            measured=rate("kafscale_wal_retries_total", "10m"),
            condition="> 0.05",
            duration="10m",
            summary=f"{BROKER} retries uploads of WAL objects.",
            description="Acknowledgements are delayed; no record is lost.",
        ),
        Alert(
            name="KafscaleWalBacklog",
            severity=Severity.WARNING,
            measured="min_over_time(kafscale_wal_objects[30m])",
            # A broker that has just started is not late.
            condition=f"> 0 and {increase('kafscale_segments_rolled_total', '30m')} == 0"
            " and kafscale_broker_uptime_seconds > 1800",
            duration="5m",
            summary=f"{BROKER} has rolled no segments for 30 minutes.",
            description="Records should be in segments after storage.maxSegmentAgeMs (default "
            "10m). The WAL grows, and a takeover takes longer.",
        ),
    ),
)
