"""Ports and advertised names, from settings as people write them."""

import pytest

from kafscale.operator.manifests.brokers import listeners
from unit.operator.manifests.clusters import PLATFORM, cluster

HOST = "$(POD_NAME).production-broker-headless.kafscale.svc.cluster.local"


def with_broker(**settings):
    return cluster(
        {"brokers": {}, "s3": {"bucket": "records"}, "config": {"settings": {"broker": settings}}}
    )


def test_without_settings_there_is_one_listener():
    plain = with_broker()
    assert listeners.client_ports(plain) == {"kafka": 9092}
    assert listeners.control_ports(plain) == {"metrics": 9093}
    assert listeners.advertised_listeners(plain, PLATFORM) == []
    assert listeners.advertised_host(plain, PLATFORM) == HOST


@pytest.mark.parametrize(
    "written", ["IN://:9092, OUT://0.0.0.0:9094", ["IN://:9092", "OUT://0.0.0.0:9094"]]
)
def test_each_listener_has_a_port_and_a_name(written):
    several = with_broker(listeners=written)
    assert listeners.client_ports(several) == {"kafka": 9092, "kafka-9094": 9094}
    assert listeners.advertised_listeners(several, PLATFORM) == [
        f"IN://{HOST}:9092",
        f"OUT://{HOST}:9094",
    ]


def test_a_name_that_is_given_is_kept():
    several = with_broker(
        listeners="IN://:9092,OUT://:9094", advertisedListeners="OUT://$(POD_NAME).example.com:443"
    )
    assert listeners.advertised_listeners(several, PLATFORM) == [
        "OUT://$(POD_NAME).example.com:443",
        f"IN://{HOST}:9092",
    ]


@pytest.mark.parametrize("written", [9095, "9095"])
def test_the_control_plane_may_have_a_port_of_its_own(written):
    ports = listeners.control_ports(with_broker(controlPort=written))
    assert ports == {"metrics": 9093, "control": 9095}


@pytest.mark.parametrize("written", [0, "", "none", {}, 7, ["x"], "IN://:0"])
def test_what_makes_no_sense_is_left_to_the_loader(written):
    odd = with_broker(listeners=written, controlPort="no port")
    assert listeners.client_ports(odd) == {"kafka": 9092}
    assert listeners.control_ports(odd) == {"metrics": 9093}
