"""Several brokers: addresses by listener; users and rules that hold at all of them, soon."""

from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient

from services import s3_server
from services.attempts import OK, Attempts
from services.broker import HOST
from services.certificates import make_certificates
from services.etcd_server import EtcdCluster
from services.rules import Rules, rule
from services.s3_server import S3Server, broker_settings
from services.secured_broker import ADMIN, SecuredBroker, password_of
from services.secured_clients import LIBRDKAFKA
from services.secured_wire import SecuredWire
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

SOON_S = 5
"""It is far less than a second where nothing else runs."""
INSIDE = {1: ("broker-1.inside", 9092), 2: ("broker-2.inside", 9092)}
OUTSIDE = {1: ("broker-1.example.com", 9001), 2: ("broker-2.example.com", 9002)}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Two of a cluster, each of which is known by other names inside and outside."""
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        (directory / "s3").mkdir()
        (directory / "etcd").mkdir()
        s3 = stack.enter_context(S3Server(directory / "s3"))
        etcd = stack.enter_context(EtcdCluster(directory / "etcd", count=1))
        certificates = make_certificates(directory / "certificates", ADMIN)
        yield [
            stack.enter_context(
                SecuredBroker(
                    directory / f"broker-{number}",
                    certificates=certificates,
                    broker_id=str(number),
                    etcd_endpoints=etcd.members[0].endpoint,
                    broker_advertised_listeners=(
                        f"OPEN://{address(INSIDE[number])},SECURE://{address(OUTSIDE[number])}"
                    ),
                    **broker_settings(s3.bucket),
                )
            )
            for number in (1, 2)
        ]


def address(place):
    return ":".join(map(str, place))


def told(way):
    """Where the brokers are, for somebody who has come by this way."""
    with SecuredWire(way) as wire:
        assert wire.enter(way) == 0
        return {each.node_id: (each.host, each.port) for each in wire.metadata().brokers}


def can_log_in(way):
    with SecuredWire(way) as wire:
        return wire.enter(way) == 0


def test_every_listener_has_its_own_addresses(brokers):
    for broker in brokers:
        wait_until(lambda: len(told(broker.anonymous())) == 2, "both brokers")  # noqa: B023
        assert told(broker.anonymous()) == INSIDE
        assert told(broker.plain(ADMIN)) == OUTSIDE
    # Without an address to tell, it is the one at which a broker listens.
    listening = {number: (HOST, brokers[number - 1].ports["MUTUAL"]) for number in (1, 2)}
    assert [told(broker.certificate(ADMIN)) for broker in brokers] == [listening, listening]


def test_users_and_rules_of_one_broker_soon_hold_at_the_other(brokers):
    here, there = brokers
    rules = Rules(AdminClient(here.certificate(ADMIN).librdkafka()))
    at_the_other = Attempts(there.inside("ulla"))
    here.add_scram_users("ulla", admin=here.certificate(ADMIN))
    wait_until(lambda: can_log_in(there.inside("ulla")), "the user", seconds_max=SOON_S)
    assert not at_the_other.sees_topic("ullas")
    rules.add(rule("User:ulla", "ALL", topic="ulla", prefixed=True))
    wait_until(lambda: at_the_other.create_topic("ulla") == OK, "the rule", seconds_max=SOON_S)
    LIBRDKAFKA.send(there.inside("ulla"), "ulla-new", [b"hello"])
    rules.remove_of("User:ulla")
    wait_until(lambda: not at_the_other.sees_topic("ulla-new"), "its end", seconds_max=SOON_S)
    assert password_of("ulla") not in here.logged() + there.logged()
