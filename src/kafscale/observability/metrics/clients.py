"""The metrics of a broker about what clients push (KIP-714); `client_metrics` counts it."""

from typing import Final

from kafscale.observability.metrics.metric import BrokerMetric, gauge

_LABELS: Final = ("software", "metric")

CLIENT_METRICS: Final = (
    gauge(
        "kafscale_client_instances",
        "Client instances that asked for subscriptions of client metrics, or pushed some.",
        lambda counters: counters.clients.instances(),
    ),
    BrokerMetric(
        "kafscale_client_pushes_total",
        "counter",
        ("software",),
        "Pushes of client metrics, by client software.",
        lambda counters: (((name,), count) for name, count in counters.clients.pushes.items()),
    ),
    BrokerMetric(
        "kafscale_client_counted_total",
        "counter",
        _LABELS,
        "What clients of a software counted: the sum of a counter that they push.",
        lambda counters: counters.clients.counted(),
    ),
    BrokerMetric(
        "kafscale_client_gauge_sum_total",
        "counter",
        _LABELS,
        "The sum of the values of a gauge that clients push; its rate divided by the rate of "
        "kafscale_client_gauge_samples_total is the average.",
        lambda counters: counters.clients.sums(),
    ),
    BrokerMetric(
        "kafscale_client_gauge_samples_total",
        "counter",
        _LABELS,
        "How many values of a gauge clients pushed.",
        lambda counters: counters.clients.counts(),
    ),
)
