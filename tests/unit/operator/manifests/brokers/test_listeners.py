"""Tests of ports and advertised listeners from settings."""

import pytest

from kafscale.operator.manifests.brokers import listeners
from unit.operator.manifests.clusters import PLATFORM, cluster

HOST = "$(POD_NAME).production-broker-headless.kafscale.svc.cluster.local"


def with_broker(**settings):
    return cluster(
        {"brokers": {}, "s3": {"bucket": "records"}, "config": {"settings": {"broker": settings}}}
    )


def test_default_is_one_listener():
    plain = with_broker()
    assert listeners.client_ports(plain) == {"kafka": 9092}
    assert listeners.advertised_listeners(plain, PLATFORM) == []
    assert listeners.advertised_host(plain, PLATFORM) == HOST


@pytest.mark.parametrize(
    "value", ["IN://:9092, OUT://0.0.0.0:9094", ["IN://:9092", "OUT://0.0.0.0:9094"]]
)
def test_each_listener_has_a_port_and_an_advertised_host(value):
    several = with_broker(listeners=value)
    assert listeners.client_ports(several) == {"kafka": 9092, "kafka-9094": 9094}
    assert listeners.advertised_listeners(several, PLATFORM) == [
        f"IN://{HOST}:9092",
        f"OUT://{HOST}:9094",
    ]


def test_configured_advertised_listener_is_kept():
    several = with_broker(
        listeners="IN://:9092,OUT://:9094", advertisedListeners="OUT://$(POD_NAME).example.com:443"
    )
    assert listeners.advertised_listeners(several, PLATFORM) == [
        "OUT://$(POD_NAME).example.com:443",
        f"IN://{HOST}:9092",
    ]


@pytest.mark.parametrize("value", [0, "", "none", {}, 7, ["x"], "IN://:0"])
def test_invalid_values_are_left_to_the_loader(value):
    invalid = with_broker(listeners=value)
    assert listeners.client_ports(invalid) == {"kafka": 9092}
