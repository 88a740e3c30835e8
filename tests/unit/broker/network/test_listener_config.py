"""Listeners, from their settings."""

import pytest

from kafscale.broker.network.listener_config import EVERY_ADDRESS, Listener, Protocol, listeners
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.errors import ConfigError


def found(**settings):
    return listeners(Config(broker=Broker(**settings)))


def test_without_listeners_there_is_one():
    assert found(host="10.0.0.1", port=1234, advertised_host="kafka") == [
        Listener(host="10.0.0.1", port=1234, advertised_host="kafka")
    ]
    [secured] = found(security_protocol="SASL_SSL")
    assert secured.is_encrypted
    assert secured.authenticates


def test_several_have_names_protocols_and_addresses_of_their_own():
    internal, external, plain = found(
        listeners=("INTERNAL://:9092", "EXTERNAL://[::1]:9094", "PLAINTEXT://localhost:0"),
        advertised_listeners=("EXTERNAL://kafka.example.com:443",),
        listener_security_protocol_map=("INTERNAL:SSL", "EXTERNAL:SASL_SSL"),
    )
    assert internal == Listener("INTERNAL", Protocol.SSL, EVERY_ADDRESS, 9092)
    assert external == Listener(
        "EXTERNAL", Protocol.SASL_SSL, "::1", 9094, "kafka.example.com", 443
    )
    assert plain == Listener("PLAINTEXT", Protocol.PLAINTEXT, "localhost", 0)
    assert (internal.is_encrypted, internal.authenticates) == (True, False)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listeners": ("INTERNAL://:9092",)}, "listenerSecurityProtocolMap"),
        ({"listeners": ("SSL://:9092", "SSL://:9093")}, "twice"),
        (
            {"listeners": ("SSL://:9092",), "advertised_listeners": ("OTHER://a:1",)},
            "OTHER, which is no listener",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, problem):
    with pytest.raises(ConfigError, match=problem):
        found(**settings)
