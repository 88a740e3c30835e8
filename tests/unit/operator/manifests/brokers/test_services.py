"""Tests of Services, of the ServiceMonitor, and of the EndpointSlice of the wake listener."""

import pytest

from kafscale.operator.manifests.brokers import services
from kafscale.operator.manifests.brokers.services import service_monitor
from unit.operator.manifests import clusters
from unit.operator.manifests.clusters import PLATFORM, case, cluster


def ports(service):
    return {each["name"]: each["port"] for each in service["spec"]["ports"]}


def with_type(kind):
    return cluster({"brokers": {}, "s3": {"bucket": "records"}, "service": {"type": kind}})


def test_headless_service_includes_pods_that_are_not_ready():
    built = services.headless(case("production")[0])
    assert built["metadata"]["name"] == "production-broker-headless"
    assert built["spec"]["clusterIP"] == "None"
    assert built["spec"]["publishNotReadyAddresses"]
    assert ports(built) == {"kafka": 9092, "metrics": 9093, "control": 9095}


def test_client_service():
    production = case("production")[0]
    built = services.client(production)
    assert built["metadata"]["name"] == "production-broker"
    assert built["spec"]["selector"] == {"app": "kafscale-broker", "cluster": "production"}
    assert ports(built) == {"kafka": 9092, "metrics": 9093, "control": 9095}
    servers = services.bootstrap_servers(production, PLATFORM)
    assert servers == "production-broker.kafscale.svc.cluster.local:9092"


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_control_plane_is_not_exposed_outside(kind):
    built = services.client(with_type(kind))
    assert built["spec"]["type"] == kind
    assert ports(built) == {"kafka": 9092}


def test_additional_listeners_have_ports():
    everything = case("everything")[0]
    assert ports(services.client(everything)) == {"kafka": 9092, "kafka-9094": 9094}
    assert ports(services.headless(everything)).keys() == {
        "kafka",
        "kafka-9094",
        "metrics",
        "control",
    }


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


@pytest.mark.parametrize("name", clusters.CASES)
def test_all_client_ports_lead_to_the_wake_listener(name):
    cluster, _ = clusters.case(name)
    service = services.client(cluster)
    built = services.endpoint_slice(cluster, "10.0.0.9", 9500)
    assert built["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert built["metadata"]["namespace"] == service["metadata"]["namespace"]
    ports = {port["name"] for port in service["spec"]["ports"]} - {"metrics", "control"}
    assert {port["name"]: port["port"] for port in built["ports"]} == dict.fromkeys(ports, 9500)
    assert built["endpoints"] == [{"addresses": ["10.0.0.9"], "conditions": {"ready": True}}]
    assert built["metadata"]["ownerReferences"][0]["uid"] == cluster.uid


@pytest.mark.parametrize(("address", "kind"), [("10.0.0.9", "IPv4"), ("fd00::9", "IPv6")])
def test_address_type(address, kind):
    cluster, _ = clusters.case("production")
    assert services.endpoint_slice(cluster, address, 9500)["addressType"] == kind
