"""Alerts about what clients meet: errors, waiting, lag, closed doors."""

from typing import Final

from kafscale.monitoring.alerts.rule import BROKER, CLUSTER, OF_CLUSTER, Alert, Group, Severity
from kafscale.monitoring.promql import equals, quantile, rate, series, total, trend

_OF_TOPIC: Final = (*OF_CLUSTER, "topic")
_OF_GROUP: Final = (*OF_CLUSTER, "group", "topic")
_TOPIC: Final = f"{{{{ $labels.topic }}}} of {CLUSTER}"


def _failed(requests: str) -> str:
    """The share of what was asked of a topic that failed."""
    failed = total(rate(series(requests, equals("status", "error"))), *_OF_TOPIC)
    return f"{failed} / {total(rate(requests), *_OF_TOPIC)}"


CLIENTS: Final = Group(
    "kafscale-clients",
    (
        Alert(
            name="KafscaleProduceErrors",
            severity=Severity.CRITICAL,
            measured=_failed("kafscale_produce_requests_total"),
            bad="> 0.05",
            lasts="5m",
            summary=f"Of appends to {_TOPIC}, {{{{ $value | humanizePercentage }}}} fail.",
            description="Producers are told so, and most of them try again; what they give up "
            "is lost to them.",
        ),
        Alert(
            name="KafscaleFetchErrors",
            severity=Severity.WARNING,
            measured=_failed("kafscale_fetch_requests_total"),
            bad="> 0.05",
            lasts="5m",
            summary=f"Of reads from {_TOPIC}, {{{{ $value | humanizePercentage }}}} fail.",
            description="Mostly a group that was away for longer than retention, or the bucket.",
        ),
        Alert(
            name="KafscaleProduceSlow",
            severity=Severity.WARNING,
            measured=quantile(
                0.99, "kafscale_produce_latency_seconds_bucket", *_OF_TOPIC, window="10m"
            ),
            bad="> 2.5",
            lasts="15m",
            summary=f"Producers to {_TOPIC} wait {{{{ $value | humanizeDuration }}}}, one in a "
            "hundred.",
            description="The bucket is slow, the budget of PUTs is small, a quota holds them "
            "back, or a broker is busy.",
        ),
        Alert(
            name="KafscaleConsumerLagGrowing",
            severity=Severity.WARNING,
            measured=total("kafscale_consumer_lag", *_OF_GROUP),
            bad=f"> 10000 and {total(trend('kafscale_consumer_lag', '30m'), *_OF_GROUP)} > 0",
            lasts="30m",
            summary="Group {{ $labels.group }} is {{ $value | humanize }} records behind in "
            f"{_TOPIC}, and falls further.",
            description="Its consumers are down, or slower than producers; what they miss is "
            "lost to them once retention takes it.",
        ),
        Alert(
            name="KafscaleConnectionsRefused",
            severity=Severity.WARNING,
            measured=rate("kafscale_connections_refused_total"),
            bad="> 0",
            lasts="5m",
            summary=f"{BROKER} has as many connections as it takes, and refuses others.",
            description="network.maxConnections or network.maxConnectionsPerIp is reached; "
            "mostly a client that connects anew for each record.",
        ),
        Alert(
            name="KafscaleHandshakesFail",
            severity=Severity.WARNING,
            measured=total(rate("kafscale_handshakes_failed_total", "10m"), *OF_CLUSTER),
            bad="> 0.2",
            lasts="10m",
            summary=f"Clients of {CLUSTER} fail at TLS; a certificate may have expired.",
            description="Connections end before their first request, several a minute.",
        ),
        Alert(
            name="KafscaleLoginsFail",
            severity=Severity.WARNING,
            measured=total(
                rate(series("kafscale_logins_total", equals("status", "error")), "10m"),
                *OF_CLUSTER,
                "mechanism",
            ),
            bad="> 0.2",
            lasts="10m",
            may_be_empty=True,
            summary=f"Clients of {CLUSTER} fail to log in by {{{{ $labels.mechanism }}}}.",
            description="A password that was changed on one side, keys that cannot be fetched, "
            "or somebody who guesses.",
        ),
        Alert(
            name="KafscaleAccessDenied",
            severity=Severity.WARNING,
            measured=total(rate("kafscale_authz_denied_total", "10m"), *OF_CLUSTER),
            bad="> 1",
            lasts="15m",
            summary=f"Clients of {CLUSTER} keep asking for what they may not do.",
            description="Mostly an application without its ACL; it may also be somebody who "
            "looks around.",
        ),
    ),
)
