"""Alerts about clients: errors, latency, lag, rejected connections."""

from typing import Final

from generators.monitoring.alerts.rule import (
    BROKER,
    CLUSTER,
    CLUSTER_LABELS,
    Alert,
    RuleGroup,
    Severity,
)
from generators.monitoring.promql import (
    deriv,
    equals,
    histogram_quantile,
    max_by,
    rate,
    selector,
    sum_by,
)

_TOPIC_LABELS: Final = (*CLUSTER_LABELS, "topic")
_PARTITION_LABELS: Final = (*_TOPIC_LABELS, "partition")
_GROUP_LABELS: Final = (*CLUSTER_LABELS, "group", "topic")
_TOPIC: Final = f"{{{{ $labels.topic }}}} of {CLUSTER}"


def _failed(requests: str) -> str:
    """Return the share of requests to a topic that failed."""
    failed = sum_by(rate(selector(requests, equals("status", "error"))), *_TOPIC_LABELS)
    return f"{failed} / {sum_by(rate(requests), *_TOPIC_LABELS)}"


CLIENTS: Final = RuleGroup(
    "kafscale-clients",
    (
        Alert(
            name="KafscaleProduceErrors",
            severity=Severity.CRITICAL,
            measured=_failed("kafscale_produce_requests_total"),
            condition="> 0.05",
            duration="5m",
            summary=f"{{{{ $value | humanizePercentage }}}} of produce requests to {_TOPIC} fail.",
            description="Producers get errors, and most of them retry; records of producers that "
            "give up are lost.",
        ),
        Alert(
            name="KafscaleFetchErrors",
            severity=Severity.WARNING,
            measured=_failed("kafscale_fetch_requests_total"),
            condition="> 0.05",
            duration="5m",
            summary=f"{{{{ $value | humanizePercentage }}}} of fetch requests to {_TOPIC} fail.",
            description="Usually a group that was stopped for longer than the retention, or an "
            "unavailable bucket.",
        ),
        Alert(
            name="KafscaleProduceSlow",
            severity=Severity.WARNING,
            measured=histogram_quantile(
                0.99, "kafscale_produce_latency_seconds_bucket", *_TOPIC_LABELS, window="10m"
            ),
            condition="> 2.5",
            duration="15m",
            summary=f"The p99 produce latency of {_TOPIC} is {{{{ $value | humanizeDuration }}}}.",
            description="The bucket is slow, the PUT rate is limited, a quota throttles clients, "
            "or a broker is overloaded.",
        ),
        Alert(
            name="KafscaleConsumerLagGrowing",
            severity=Severity.WARNING,
            measured=sum_by("kafscale_consumer_lag", *_GROUP_LABELS),
            condition="> 10000 and "
            f"{sum_by(deriv('kafscale_consumer_lag', '30m'), *_GROUP_LABELS)} > 0",
            duration="30m",
            summary="Group {{ $labels.group }} has a growing lag of {{ $value | humanize }} "
            "records "
            f"in {_TOPIC}.",
            description="Its consumers are down or slower than producers; they miss records that "
            "retention deletes before they are read.",
        ),
        Alert(
            name="KafscaleTransactionHanging",
            severity=Severity.WARNING,
            measured=max_by("kafscale_oldest_transaction_seconds", *_PARTITION_LABELS),
            condition="> 3600",
            duration="5m",
            may_be_empty=True,
            summary="A transaction has been open in {{ $labels.topic }}/{{ $labels.partition }} of "
            f"{CLUSTER} for {{{{ $value | humanizeDuration }}}}.",
            description="Consumers with isolation.level=read_committed do not read beyond its "
            "first record. By default, transactions end within 15 minutes "
            "(transaction.maxTimeoutMs).",
        ),
        Alert(
            name="KafscaleConnectionsRefused",
            severity=Severity.WARNING,
            measured=rate("kafscale_connections_refused_total"),
            condition="> 0",
            duration="5m",
            summary=f"{BROKER} has reached its connection limit and rejects connections.",
            description="network.maxConnections or network.maxConnectionsPerIp is reached; "
            "usually a client opens a connection for each record.",
        ),
        Alert(
            name="KafscaleHandshakesFail",
            severity=Severity.WARNING,
            measured=sum_by(rate("kafscale_handshakes_failed_total", "10m"), *CLUSTER_LABELS),
            condition="> 0.2",
            duration="10m",
            summary=f"TLS handshakes with {CLUSTER} fail; a certificate may have expired.",
            description="Several connections per minute end before their first request.",
        ),
        Alert(
            name="KafscaleLoginsFail",
            severity=Severity.WARNING,
            measured=sum_by(
                rate(selector("kafscale_logins_total", equals("status", "error")), "10m"),
                *CLUSTER_LABELS,
                "mechanism",
            ),
            condition="> 0.2",
            duration="10m",
            may_be_empty=True,
            summary=f"Clients of {CLUSTER} fail to authenticate with {{{{ $labels.mechanism }}}}.",
            description="A password was changed on one side only, signing keys cannot be fetched, "
            "or an attacker guesses passwords.",
        ),
        Alert(
            name="KafscaleAccessDenied",
            severity=Severity.WARNING,
            measured=sum_by(rate("kafscale_authz_denied_total", "10m"), *CLUSTER_LABELS),
            condition="> 1",
            duration="15m",
            summary=f"Requests to {CLUSTER} are denied by ACLs.",
            description="Usually an application lacks an ACL; it may also be an attacker who "
            "probes for access.",
        ),
    ),
)
