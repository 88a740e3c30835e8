"""Tests of a managed etcd's certificates: issued once, renewed in time, always mutually trusted."""

import base64
import datetime as dt

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kafscale.operator.etcd.certificates import (
    hosts,
    secret_names,
    secrets_to_write,
    trust_checksum,
)
from kafscale.operator.manifests.names import Platform
from unit.operator.manifests.clusters import cluster

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
PLATFORM = Platform()
CLUSTER = cluster({"brokers": {}, "s3": {"bucket": "records"}}, "shop")
CA, SERVER, CLIENT = secret_names(CLUSTER)


def issue(existing, now=NOW, platform=PLATFORM):
    """The Secrets afterwards, and the names of those that were written."""
    names = {
        each["metadata"]["name"]: each
        for each in secrets_to_write(CLUSTER, platform, existing, now)
    }
    return {**existing, **names}, sorted(names)


def entry(secret, name="tls.crt"):
    return base64.b64decode(secret["data"][name])


def certificate(secret):
    return x509.load_pem_x509_certificate(entry(secret))


def trusted(secret):
    return x509.load_pem_x509_certificates(entry(secret, "ca.crt"))


def is_trusted(secrets, holder, other):
    """Whether the holder of a Secret accepts the certificate of another."""
    for ca in trusted(secrets[holder]):
        try:
            certificate(secrets[other]).verify_directly_issued_by(ca)
        except Exception:  # noqa: BLE001, S112 - any error means: not issued by it.
            continue
        return True
    return False


def trust_each_other(secrets):
    return is_trusted(secrets, SERVER, CLIENT) and is_trusted(secrets, CLIENT, SERVER)


@pytest.fixture(scope="module")
def first():
    return issue({})[0]


def test_secrets_are_created_once(first):
    assert sorted(first) == sorted([CA, SERVER, CLIENT])
    for secret in first.values():
        assert secret["type"] == "kubernetes.io/tls"
        assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
        assert secret["metadata"]["ownerReferences"]
    assert trust_each_other(first)
    assert issue(first) == (first, [])
    assert issue(first, NOW + 200 * DAY) == (first, [])


def test_key_of_the_ca_is_only_in_its_own_secret(first):
    key = first[CA]["data"]["tls.key"]
    assert key not in first[SERVER]["data"].values()
    assert key not in first[CLIENT]["data"].values()


def test_members_and_clients_have_different_usages_and_names(first):
    usages = {
        name: set(
            certificate(first[name]).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        )
        for name in (SERVER, CLIENT)
    }
    server, client = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
    assert usages == {SERVER: {server, client}, CLIENT: {client}}
    common = [
        certificate(first[name]).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        for name in (SERVER, CLIENT)
    ]
    assert common == ["kafscale-etcd", "kafscale-client"]


def test_members_have_all_their_host_names():
    assert set(hosts(CLUSTER, PLATFORM)) >= {
        "shop-etcd-0.shop-etcd-headless.kafscale.svc.cluster.local",
        "shop-etcd-4.shop-etcd-headless.kafscale.svc.cluster.local",
        "*.shop-etcd-headless.kafscale.svc.cluster.local",
        "shop-etcd.kafscale.svc.cluster.local",
        "shop-etcd.kafscale.svc",
        "localhost",
        "127.0.0.1",
    }


def test_certificates_are_renewed_after_two_thirds_of_a_year(first):
    for days, expected in ((242, []), (244, sorted([SERVER, CLIENT]))):
        after, written = issue(first, NOW + days * DAY)
        assert written == expected
        assert trust_each_other(after)
        assert trust_checksum(after[SERVER]) == trust_checksum(first[SERVER])


def test_changed_hosts_renew_the_certificate(first):
    after, names = issue(first, platform=Platform(cluster_domain="example.org"))
    assert names == [SERVER]
    assert trust_each_other(after)


@pytest.mark.parametrize("entry_name", ["tls.crt", "tls.key", "ca.crt"])
@pytest.mark.parametrize("name", [SERVER, CLIENT, CA])
def test_damaged_secrets_are_replaced_without_breaking_trust(first, name, entry_name):
    damaged = {**first, name: {**first[name], "data": {**first[name]["data"], entry_name: "eA=="}}}
    after, names = issue(damaged)
    assert name in names
    assert trust_each_other(after)
    assert issue(after)[1] == []


def test_lost_secret_is_replaced(first):
    for name in (SERVER, CLIENT):
        after, names = issue({key: first[key] for key in first if key != name})
        assert names == [name]
        assert trust_each_other(after)


def test_new_ca_is_trusted_before_it_issues(first):
    kept = {key: first[key] for key in first if key != CA}
    soon, names = issue(kept, NOW + DAY)
    assert len(names) == 3
    assert certificate(soon[SERVER]) == certificate(first[SERVER])
    assert certificate(soon[CLIENT]) == certificate(first[CLIENT])
    assert len(trusted(soon[SERVER])) == 2
    assert trust_checksum(soon[SERVER]) != trust_checksum(first[SERVER])
    assert trust_each_other(soon)
    assert issue(soon, NOW + 1.9 * DAY)[1] == []
    later, names = issue(soon, NOW + 2 * DAY)
    assert names == sorted([SERVER, CLIENT])
    assert trust_each_other(later)
    # Members with new certificates and clients with old ones, and vice versa.
    assert is_trusted({SERVER: later[SERVER], CLIENT: soon[CLIENT]}, CLIENT, SERVER)
    assert is_trusted({SERVER: soon[SERVER], CLIENT: later[CLIENT]}, SERVER, CLIENT)


def test_trust_holds_through_years_of_renewals(first):
    secrets, now, cas = first, NOW, set()
    for _ in range(250):
        now += 30 * DAY
        before = secrets
        secrets, _names = issue(secrets, now)
        assert trust_each_other(secrets)
        # Before a restart, members and clients have the former certificates.
        assert is_trusted({SERVER: secrets[SERVER], CLIENT: before[CLIENT]}, CLIENT, SERVER)
        assert is_trusted({SERVER: before[SERVER], CLIENT: secrets[CLIENT]}, SERVER, CLIENT)
        for name in (SERVER, CLIENT):
            assert certificate(secrets[name]).not_valid_after_utc > now + 60 * DAY
        cas.add(entry(secrets[CA]))
    assert 3 <= len(cas) <= 4
    assert len(trusted(secrets[SERVER])) <= 2
