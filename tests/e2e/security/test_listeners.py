"""Clients are told of brokers by the addresses of the listener at which they have come."""

from contextlib import ExitStack

import pytest

from services import s3_server
from services.broker import HOST, BrokerProcess
from services.etcd_server import EtcdCluster
from services.process import free_port
from services.s3_server import S3Server, broker_settings
from services.secured_wire import SecuredWire
from services.waiting import wait_until
from services.way_in import WayIn

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def brokers(tmp_path):
    """Two of a cluster, each of which is known by other names inside and outside."""
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    with ExitStack() as stack:
        (tmp_path / "s3").mkdir()
        (tmp_path / "etcd").mkdir()
        s3 = stack.enter_context(S3Server(tmp_path / "s3"))
        etcd = stack.enter_context(EtcdCluster(tmp_path / "etcd", count=1))
        yield [
            stack.enter_context(
                BrokerProcess(
                    tmp_path / f"broker-{number}",
                    **broker_settings(s3.bucket),
                    etcd_endpoints=etcd.members[0].endpoint,
                    broker_id=str(number),
                    **listeners(number),
                )
            )
            for number in (1, 2)
        ]


def listeners(number):
    ports = {name: free_port() for name in ("INSIDE", "OUTSIDE", "PLAINTEXT")}
    advertised = {
        "INSIDE": f"broker-{number}.inside:9092",
        "OUTSIDE": f"broker-{number}.example.com:{9000 + number}",
    }
    return {
        "broker_listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "broker_listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "broker_advertised_listeners": ",".join(
            f"{name}://{address}" for name, address in advertised.items()
        ),
    }


def port_of(broker, listener):
    listed = dict(entry.split("://") for entry in broker.settings["broker_listeners"].split(","))
    return int(listed[listener].rpartition(":")[2])


def told(broker, listener):
    """Where the brokers are, for a client of this listener."""
    port = port_of(broker, listener)
    with SecuredWire(WayIn(port=port, protocol="PLAINTEXT")) as wire:
        return {each.node_id: (each.host, each.port) for each in wire.metadata().brokers}


def test_every_listener_has_its_own_addresses(brokers):
    inside = {1: ("broker-1.inside", 9092), 2: ("broker-2.inside", 9092)}
    outside = {1: ("broker-1.example.com", 9001), 2: ("broker-2.example.com", 9002)}
    for broker in brokers:
        wait_until(lambda: len(told(broker, "INSIDE")) == 2, "both brokers")  # noqa: B023
        assert told(broker, "INSIDE") == inside
        assert told(broker, "OUTSIDE") == outside
    # Without an address to tell, it is the one at which the broker listens.
    plain = {number: (HOST, port_of(brokers[number - 1], "PLAINTEXT")) for number in (1, 2)}
    assert [told(broker, "PLAINTEXT") for broker in brokers] == [plain, plain]
