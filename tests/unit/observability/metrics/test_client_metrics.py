"""Client metrics: sums over clients, and a limit on series."""

from kafscale.observability.metrics.broker import Metrics
from kafscale.observability.metrics.client_metrics import SERIES_MAX
from unit.observability.scraping import values

CREATED, LATENCY = "connection.creation.total", "request.latency.avg"


def test_values_of_clients_are_added_up():
    metrics = Metrics()
    for _ in range(2):
        metrics.clients.add("java", CREATED, 3.0)
        metrics.clients.observe("java", LATENCY, 0.25)
    assert values(metrics, "kafscale_client_counted_total") == {("java", CREATED): 6}
    assert values(metrics, "kafscale_client_gauge_sum_total") == {("java", LATENCY): 0.5}
    assert values(metrics, "kafscale_client_gauge_samples_total") == {("java", LATENCY): 2}


def test_series_are_limited_and_sums_stay_correct():
    metrics = Metrics()
    metrics.clients.add("java", CREATED, 1.0)
    for number in range(2 * SERIES_MAX):
        metrics.clients.observe("hostile", f"metric-{number}", 1.0)
        metrics.clients.pushed(f"software-{number}")
    metrics.clients.add("java", CREATED, 1.0)
    samples = values(metrics, "kafscale_client_gauge_samples_total")
    assert len(samples) <= SERIES_MAX
    assert sum(samples.values()) == 2 * SERIES_MAX
    assert values(metrics, "kafscale_client_counted_total") == {("java", CREATED): 2}
    assert len(values(metrics, "kafscale_client_pushes_total")) <= SERIES_MAX + 1
