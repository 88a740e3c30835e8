"""The ServiceMonitor finds each broker, and finds it once."""

from kafscale.operator.manifests.brokers import services
from kafscale.operator.manifests.brokers.service_monitor import service_monitor
from unit.operator.manifests.clusters import case


def test_one_of_the_two_services_is_looked_at():
    made = case("production")[0]
    monitor = service_monitor(made)
    assert monitor is not None
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    found = [
        each["metadata"]["name"]
        for each in (services.headless(made), services.client(made))
        if wanted <= each["metadata"]["labels"].items()
    ]
    assert found == ["production-broker-headless"]
    [endpoint] = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in services.headless(made)["spec"]["ports"]}


def test_labels_of_users_are_there_and_do_not_hide_ours():
    made = case("everything")[0]
    made.spec.monitoring.labels["cluster"] = "another"
    monitor = service_monitor(made)
    assert monitor is not None
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["metadata"]["labels"]["cluster"] == "everything"


def test_there_is_none_where_none_is_wanted():
    assert service_monitor(case("try_out")[0]) is None
