"""The metrics of who is let in: logins, denials and quotas."""

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
        "Connections that ended before their first request, most of them because TLS failed.",
        lambda traffic: traffic.connections.handshakes_failed,
    ),
    counter(
        "kafscale_authz_denied_total",
        "Things that clients asked for and may not do.",
        lambda traffic: traffic.access.denied,
    ),
    BrokerMetric(
        "kafscale_logins_total",
        "counter",
        ("mechanism", "status"),
        "Attempts to log in, and to log in again.",
        _logins,
    ),
    BrokerMetric(
        "kafscale_throttled_answers_total",
        "counter",
        ("quota",),
        "Answers that told a client to slow down.",
        lambda traffic: (((quota,), count) for quota, count in traffic.access.throttled.items()),
    ),
)
