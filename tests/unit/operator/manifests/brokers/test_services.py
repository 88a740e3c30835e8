"""Tests of the brokers' two Services."""

import pytest

from kafscale.operator.manifests.brokers import services
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
    assert ports(built) == {"kafka": 9092, "metrics": 9093}


def test_client_service():
    production = case("production")[0]
    built = services.client(production)
    assert built["metadata"]["name"] == "production-broker"
    assert built["spec"]["selector"] == {"app": "kafscale-broker", "cluster": "production"}
    assert ports(built) == {"kafka": 9092, "metrics": 9093}
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
