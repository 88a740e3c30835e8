"""Tests that the ServiceMonitor selects each broker once."""

from kafscale.operator.manifests.brokers import services
from kafscale.operator.manifests.brokers.service_monitor import service_monitor
from unit.operator.manifests.clusters import case


def test_only_the_headless_service_is_scraped():
    built = case("production")[0]
    monitor = service_monitor(built)
    assert monitor is not None
    desired = monitor["spec"]["selector"]["matchLabels"].items()
    selected = [
        each["metadata"]["name"]
        for each in (services.headless(built), services.client(built))
        if desired <= each["metadata"]["labels"].items()
    ]
    assert selected == ["production-broker-headless"]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in services.headless(built)["spec"]["ports"]}


def test_user_labels_do_not_override_our_own():
    built = case("everything")[0]
    built.spec.monitoring.labels["cluster"] = "another"
    monitor = service_monitor(built)
    assert monitor is not None
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["metadata"]["labels"]["cluster"] == "everything"


def test_service_monitor_can_be_disabled():
    assert service_monitor(case("try_out")[0]) is None
