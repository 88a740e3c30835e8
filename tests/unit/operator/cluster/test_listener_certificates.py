"""Tests of the certificates of listeners: which host names clients can verify, and renewals."""

import asyncio
import datetime as dt

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from kafscale.operator.certificates import entries_of
from kafscale.operator.cluster.listener_certificates import ListenerCertificates
from kafscale.operator.kube.api import CONFIG_MAPS, SECRETS
from kafscale.operator.manifests.names import Platform
from services.memory_kube import MemoryKube
from unit.operator.manifests.clusters import cluster

START_MS = 1_800_000_000_000
DAY_MS = 86_400_000
PLATFORM = Platform()


class World:
    """An operator and what it has written for a cluster with this `spec.tls`."""

    def __init__(self, **tls):
        self.kube = MemoryKube()
        self.now_ms = START_MS
        spec = {"brokers": {}, "s3": {"bucket": "records"}, "tls": {"enabled": True, **tls}}
        self.cluster = cluster(spec, "shop")
        self.issuer = ListenerCertificates(self.kube, PLATFORM, lambda: self.now_ms)

    def reconcile(self):
        asyncio.run(self.issuer.reconcile(self.cluster))

    def get(self, kind, name):
        return asyncio.run(self.kube.get(kind, "kafscale", name))

    def certificate(self):
        entries = entries_of(self.get(SECRETS, "shop-listener-tls"))
        return x509.load_pem_x509_certificate(entries["tls.crt"])

    def published_cas(self):
        published = self.get(CONFIG_MAPS, "shop-listener-ca")["data"]["ca.crt"]
        return x509.load_pem_x509_certificates(published.encode())

    def verify(self, host):
        """Verify the certificate as a client does that trusts the ConfigMap."""
        now = dt.datetime.fromtimestamp(self.now_ms / 1000, dt.UTC)
        policy = PolicyBuilder().store(Store(self.published_cas())).time(now)
        policy.build_server_verifier(x509.DNSName(host)).verify(self.certificate(), [])


@pytest.mark.parametrize(
    "host",
    [
        "shop-broker-2.shop-broker-headless.kafscale.svc.cluster.local",
        "shop-broker.kafscale.svc.cluster.local",
        "shop-broker.kafscale.svc",
        "shop-broker",
        "shop-broker-0.kafka.example.com",
        "localhost",
    ],
)
def test_clients_can_verify_every_name_of_a_broker(host):
    world = World(hosts=["*.kafka.example.com"])
    world.reconcile()
    world.verify(host)


def test_other_names_are_not_in_the_certificate():
    world = World()
    world.reconcile()
    with pytest.raises(VerificationError):
        world.verify("shop-broker-0.kafka.example.com")


def test_certificate_stays_until_it_is_due_and_is_renewed_with_the_same_ca():
    world = World(hosts=["FD00:0::1", "kafka.example.com"])
    world.reconcile()
    first, cas = world.certificate(), world.published_cas()
    world.now_ms += 200 * DAY_MS
    world.reconcile()
    assert world.certificate() == first
    world.now_ms += 50 * DAY_MS
    world.reconcile()
    assert world.certificate() != first
    assert world.published_cas() == cas
    world.verify("localhost")


def test_new_host_is_added_at_once():
    world = World()
    world.reconcile()
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    world.cluster = cluster(
        {**spec, "tls": {"enabled": True, "hosts": ["kafka.example.com"]}}, "shop"
    )
    world.reconcile()
    world.verify("kafka.example.com")


def test_key_of_the_ca_is_in_its_own_secret_only():
    world = World()
    world.reconcile()
    key = entries_of(world.get(SECRETS, "shop-listener-ca"))["tls.key"]
    assert key not in entries_of(world.get(SECRETS, "shop-listener-tls")).values()
    assert b"PRIVATE" not in str(world.get(CONFIG_MAPS, "shop-listener-ca")).encode()


def test_nothing_is_issued_unless_the_spec_asks_for_it():
    world = World(enabled=False)
    world.reconcile()
    assert world.get(SECRETS, "shop-listener-tls") is None
    assert world.get(CONFIG_MAPS, "shop-listener-ca") is None
