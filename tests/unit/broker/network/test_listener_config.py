"""The configured listeners."""

import pytest

from kafscale.broker.network.listener_config import (
    ANY_ADDRESS,
    Listener,
    SecurityProtocol,
    configured_listeners,
)
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.errors import ConfigError


def listeners_of(**settings):
    return configured_listeners(Config(broker=Broker(**settings)))


def test_default_is_a_single_listener():
    assert listeners_of(host="10.0.0.1", port=1234, advertised_host="kafka") == [
        Listener(host="10.0.0.1", port=1234, advertised_host="kafka")
    ]
    [secured] = listeners_of(security_protocol="SASL_SSL")
    assert secured.is_encrypted
    assert secured.authenticates


def test_several_listeners_with_names_protocols_and_addresses():
    internal, external, plain = listeners_of(
        listeners=("INTERNAL://:9092", "EXTERNAL://[::1]:9094", "PLAINTEXT://localhost:0"),
        advertised_listeners=("EXTERNAL://kafka.example.com:443",),
        listener_security_protocol_map=("INTERNAL:SSL", "EXTERNAL:SASL_SSL"),
    )
    assert internal == Listener("INTERNAL", SecurityProtocol.SSL, ANY_ADDRESS, 9092)
    assert external == Listener(
        "EXTERNAL", SecurityProtocol.SASL_SSL, "::1", 9094, "kafka.example.com", 443
    )
    assert plain == Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, "localhost", 0)
    assert (internal.is_encrypted, internal.authenticates) == (True, False)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listeners": ("INTERNAL://:9092",)}, "listenerSecurityProtocolMap"),
        ({"listeners": ("SSL://:9092", "SSL://:9093")}, "twice"),
        (
            {"listeners": ("SSL://:9092",), "advertised_listeners": ("OTHER://a:1",)},
            "OTHER, which broker.listeners does not define",
        ),
    ],
)
def test_contradictory_listeners_are_config_errors(settings, problem):
    with pytest.raises(ConfigError, match=problem):
        listeners_of(**settings)
