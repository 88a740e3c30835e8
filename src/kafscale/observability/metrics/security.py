"""Metrics of authentication, authorization and quotas."""

from typing import Final

from kafscale.observability.metrics.counters import Counters
from kafscale.observability.metrics.declaration import BrokerMetric, counter
from kafscale.observability.metrics.text_format import Series


def _logins(traffic: Counters) -> Series:
    for (mechanism, succeeded), count in traffic.access.logins.items():
        yield (mechanism, "success" if succeeded else "error"), count


SECURITY_METRICS: Final = (
    counter(
        "kafscale_handshakes_failed_total",
        "Connections closed before their first request, mostly because of failed TLS handshakes.",
        lambda traffic: traffic.connections.handshakes_failed,
    ),
    counter(
        "kafscale_authz_denied_total",
        "Operations denied by authorization.",
        lambda traffic: traffic.access.denied,
    ),
    BrokerMetric(
        "kafscale_logins_total",
        "counter",
        ("mechanism", "status"),
        "Authentications and re-authentications.",
        _logins,
    ),
    BrokerMetric(
        "kafscale_throttled_responses_total",
        "counter",
        ("quota",),
        "Responses that throttled a client.",
        lambda traffic: (((quota,), count) for quota, count in traffic.access.throttled.items()),
    ),
)
