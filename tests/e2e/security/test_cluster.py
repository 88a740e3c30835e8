"""Two secured brokers: addresses per listener, and users and ACLs that apply at both."""

from contextlib import ExitStack

import pytest
from confluent_kafka.admin import AdminClient

from services import s3_server
from services.acls import Acls, acl_binding
from services.broker import HOST
from services.certificates import make_certificates
from services.client_operations import OK, ClientOperations
from services.etcd_server import EtcdCluster
from services.s3_server import S3Server, broker_settings
from services.secured_broker import ADMIN, SecuredBroker, password_of
from services.secured_clients import LIBRDKAFKA
from services.secured_wire import SecuredWire
from services.waiting import wait_until

pytestmark = pytest.mark.timeout(120)

PROPAGATION_S_MAX = 5
"""It takes far less than a second on an idle machine."""
INSIDE = {1: ("broker-1.inside", 9092), 2: ("broker-2.inside", 9092)}
OUTSIDE = {1: ("broker-1.example.com", 9001), 2: ("broker-2.example.com", 9002)}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Two brokers of a cluster, with different advertised addresses per listener."""
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


def address(host_and_port):
    return ":".join(map(str, host_and_port))


def advertised_addresses(config):
    """The addresses of the brokers that this listener returns."""
    with SecuredWire(config) as wire:
        assert wire.log_in_with(config) == 0
        return {each.node_id: (each.host, each.port) for each in wire.metadata().brokers}


def can_log_in(config):
    with SecuredWire(config) as wire:
        return wire.log_in_with(config) == 0


def test_each_listener_advertises_its_own_addresses(brokers):
    for broker in brokers:
        wait_until(lambda: len(advertised_addresses(broker.anonymous())) == 2, "both brokers")  # noqa: B023
        assert advertised_addresses(broker.anonymous()) == INSIDE
        assert advertised_addresses(broker.plain(ADMIN)) == OUTSIDE
    # Without an advertised address, a listener returns its bound one.
    listening = {number: (HOST, brokers[number - 1].ports["MUTUAL"]) for number in (1, 2)}
    assert [advertised_addresses(broker.certificate(ADMIN)) for broker in brokers] == [
        listening,
        listening,
    ]


def test_users_and_acls_propagate_to_the_other_broker(brokers):
    first, second = brokers
    acls = Acls(AdminClient(first.certificate(ADMIN).librdkafka()))
    attempts_at_second = ClientOperations(second.inside("ulla"))
    first.add_scram_users("ulla", admin=first.certificate(ADMIN))
    wait_until(lambda: can_log_in(second.inside("ulla")), "the user", seconds_max=PROPAGATION_S_MAX)
    assert not attempts_at_second.lists_topic("ullas")
    acls.add(acl_binding("User:ulla", "ALL", topic="ulla", prefixed=True))
    wait_until(
        lambda: attempts_at_second.create_topic("ulla") == OK,
        "the ACL",
        seconds_max=PROPAGATION_S_MAX,
    )
    LIBRDKAFKA.send(second.inside("ulla"), "ulla-new", [b"hello"])
    acls.delete_of("User:ulla")
    wait_until(
        lambda: not attempts_at_second.lists_topic("ulla-new"),
        "its removal",
        seconds_max=PROPAGATION_S_MAX,
    )
    assert password_of("ulla") not in first.logged() + second.logged()
