"""The two Services: names for pods, and a door for clients."""

import pytest

from kafscale.operator.manifests.brokers import services
from unit.operator.manifests.clusters import PLATFORM, case, cluster


def ports(service):
    return {each["name"]: each["port"] for each in service["spec"]["ports"]}


def with_type(kind):
    return cluster({"brokers": {}, "s3": {"bucket": "records"}, "service": {"type": kind}})


def test_each_broker_has_a_name_even_before_it_is_ready():
    made = services.headless(case("production")[0])
    assert made["metadata"]["name"] == "production-broker-headless"
    assert made["spec"]["clusterIP"] == "None"
    assert made["spec"]["publishNotReadyAddresses"]
    assert ports(made) == {"kafka": 9092, "metrics": 9093}


def test_clients_begin_at_one_name():
    production = case("production")[0]
    made = services.client(production)
    assert made["metadata"]["name"] == "production-broker"
    assert made["spec"]["selector"] == {"app": "kafscale-broker", "cluster": "production"}
    assert ports(made) == {"kafka": 9092, "metrics": 9093}
    servers = services.bootstrap_servers(production, PLATFORM)
    assert servers == "production-broker.kafscale.svc.cluster.local:9092"


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_the_outside_gets_no_control_plane(kind):
    made = services.client(with_type(kind))
    assert made["spec"]["type"] == kind
    assert ports(made) == {"kafka": 9092}


def test_further_listeners_are_served_too():
    everything = case("everything")[0]
    assert ports(services.client(everything)) == {"kafka": 9092, "kafka-9094": 9094}
    assert ports(services.headless(everything)).keys() == {
        "kafka",
        "kafka-9094",
        "metrics",
        "control",
    }
