"""The EndpointSlice of the doorbell fits the Service that it stands in for."""

import pytest

from kafscale.operator.manifests.brokers import services, wake_endpoint_slice
from unit.operator.manifests import clusters


@pytest.mark.parametrize("name", clusters.CASES)
def test_every_port_for_clients_leads_to_the_doorbell(name):
    cluster, _ = clusters.case(name)
    service = services.client(cluster)
    made = wake_endpoint_slice.endpoint_slice(cluster, "10.0.0.9", 9500)
    assert made["metadata"]["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
    assert made["metadata"]["namespace"] == service["metadata"]["namespace"]
    ports = {port["name"] for port in service["spec"]["ports"]} - {"metrics"}
    assert {port["name"]: port["port"] for port in made["ports"]} == dict.fromkeys(ports, 9500)
    assert made["endpoints"] == [{"addresses": ["10.0.0.9"], "conditions": {"ready": True}}]
    assert made["metadata"]["ownerReferences"][0]["uid"] == cluster.uid


@pytest.mark.parametrize(("address", "kind"), [("10.0.0.9", "IPv4"), ("fd00::9", "IPv6")])
def test_the_type_goes_by_the_address(address, kind):
    cluster, _ = clusters.case("production")
    assert wake_endpoint_slice.endpoint_slice(cluster, address, 9500)["addressType"] == kind
