"""The advertised address of the broker."""

import pytest

from kafscale.broker.network.advertised import advertised
from kafscale.broker.network.listener_config import configured_listeners
from kafscale.broker.requests.context import ClientInfo
from kafscale.config import Config
from kafscale.config.sections.broker import Broker
from kafscale.config.sections.s3 import S3
from kafscale.protocol.messages.metadata import METADATA
from unit.broker.in_memory_broker import run_with_broker


def advertised_to(client, **settings):
    result = []
    config = Config(s3=S3(use_memory=True), broker=Broker(**settings))
    [client.listener] = configured_listeners(config)

    async def body(broker):
        context = broker.context(METADATA, METADATA.version_max)
        context.client = client
        result.append(advertised(context))

    run_with_broker(body, config=config)
    return result[0]


@pytest.mark.parametrize(
    ("served", "host"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("localhost", "localhost"),
    ],
)
def test_advertised_address_defaults_to_the_local_address(served, host):
    assert advertised_to(ClientInfo("10.0.0.1", 50_000, served, 19_092)) == (host, 19_092)


def test_advertised_host_and_port_override_independently():
    client = ClientInfo("10.0.0.1", 50_000, "192.0.2.1", 19_092)

    both = {"advertised_host": "kafka.example", "advertised_port": 443}
    assert advertised_to(client, **both) == ("kafka.example", 443)
    assert advertised_to(client, advertised_host="kafka.example") == ("kafka.example", 19_092)
    assert advertised_to(client, advertised_port=443) == ("192.0.2.1", 443)
