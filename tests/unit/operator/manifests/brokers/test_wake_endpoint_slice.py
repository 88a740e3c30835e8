"""Tests that the EndpointSlice of the wake listener matches the client Service."""

import pytest

from kafscale.operator.manifests.brokers import services, wake_endpoint_slice
from unit.operator.manifests import clusters


@pytest.mark.parametrize("name", clusters.CASES)
def test_all_client_ports_lead_to_the_wake_listener(name):
    cluster, _ = clusters.case(name)
    service = services.client(cluster)
    built = wake_endpoint_slice.endpoint_slice(cluster, "10.0.0.9", 9500)
    assert built["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert built["metadata"]["namespace"] == service["metadata"]["namespace"]
    ports = {port["name"] for port in service["spec"]["ports"]} - {"metrics"}
    assert {port["name"]: port["port"] for port in built["ports"]} == dict.fromkeys(ports, 9500)
    assert built["endpoints"] == [{"addresses": ["10.0.0.9"], "conditions": {"ready": True}}]
    assert built["metadata"]["ownerReferences"][0]["uid"] == cluster.uid


@pytest.mark.parametrize(("address", "kind"), [("10.0.0.9", "IPv4"), ("fd00::9", "IPv6")])
def test_address_type(address, kind):
    cluster, _ = clusters.case("production")
    assert wake_endpoint_slice.endpoint_slice(cluster, address, 9500)["addressType"] == kind
