"""Certificates of a managed etcd: made once, renewed in time, and never without those who trust."""

import base64
import datetime as dt

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kafscale.operator.etcd.certificates import hosts, needed, secret_names, trust_checksum
from kafscale.operator.manifests.names import Platform
from unit.operator.manifests.clusters import cluster

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
PLATFORM = Platform()
CLUSTER = cluster({"brokers": {}, "s3": {"bucket": "records"}}, "shop")
AUTHORITY, SERVER, CLIENT = secret_names(CLUSTER)


def issue(existing, now=NOW, platform=PLATFORM):
    """The Secrets as they are afterwards, and the names of those that were written."""
    written = {each["metadata"]["name"]: each for each in needed(CLUSTER, platform, existing, now)}
    return {**existing, **written}, sorted(written)


def entry(secret, name="tls.crt"):
    return base64.b64decode(secret["data"][name])


def certificate(secret):
    return x509.load_pem_x509_certificate(entry(secret))


def trusted(secret):
    return x509.load_pem_x509_certificates(entry(secret, "ca.crt"))


def is_trusted(secrets, holder, other):
    """Whether a holder of a Secret accepts the certificate of another."""
    for authority in trusted(secrets[holder]):
        try:
            certificate(secrets[other]).verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - whatever it says, it is not this one.
            continue
        return True
    return False


def agree(secrets):
    return is_trusted(secrets, SERVER, CLIENT) and is_trusted(secrets, CLIENT, SERVER)


@pytest.fixture(scope="module")
def first():
    return issue({})[0]


def test_everything_is_made_at_first_and_then_left_alone(first):
    assert sorted(first) == sorted([AUTHORITY, SERVER, CLIENT])
    for secret in first.values():
        assert secret["type"] == "kubernetes.io/tls"
        assert set(secret["data"]) == {"tls.crt", "tls.key", "ca.crt"}
        assert secret["metadata"]["ownerReferences"]
    assert agree(first)
    assert issue(first) == (first, [])
    assert issue(first, NOW + 200 * DAY) == (first, [])


def test_the_key_of_the_authority_is_in_its_own_secret_alone(first):
    key = first[AUTHORITY]["data"]["tls.key"]
    assert key not in first[SERVER]["data"].values()
    assert key not in first[CLIENT]["data"].values()


def test_members_and_clients_can_be_told_apart(first):
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


def test_members_are_known_by_all_their_names():
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
    for days, written in ((242, []), (244, sorted([SERVER, CLIENT]))):
        after, names = issue(first, NOW + days * DAY)
        assert names == written
        assert agree(after)
        assert trust_checksum(after[SERVER]) == trust_checksum(first[SERVER])


def test_other_hosts_want_another_certificate(first):
    after, written = issue(first, platform=Platform(cluster_domain="example.org"))
    assert written == [SERVER]
    assert agree(after)


@pytest.mark.parametrize("entry_name", ["tls.crt", "tls.key", "ca.crt"])
@pytest.mark.parametrize("name", [SERVER, CLIENT, AUTHORITY])
def test_what_is_damaged_is_made_anew_and_everybody_still_agrees(first, name, entry_name):
    damaged = {**first, name: {**first[name], "data": {**first[name]["data"], entry_name: "eA=="}}}
    after, written = issue(damaged)
    assert name in written
    assert agree(after)
    assert issue(after)[1] == []


def test_a_lost_secret_is_made_anew(first):
    for name in (SERVER, CLIENT):
        after, written = issue({key: first[key] for key in first if key != name})
        assert written == [name]
        assert agree(after)


def test_a_lost_authority_has_a_successor_that_is_trusted_before_it_issues(first):
    kept = {key: first[key] for key in first if key != AUTHORITY}
    soon, written = issue(kept, NOW + DAY)
    assert len(written) == 3
    assert certificate(soon[SERVER]) == certificate(first[SERVER])
    assert certificate(soon[CLIENT]) == certificate(first[CLIENT])
    assert len(trusted(soon[SERVER])) == 2
    assert trust_checksum(soon[SERVER]) != trust_checksum(first[SERVER])
    assert agree(soon)
    assert issue(soon, NOW + 1.9 * DAY)[1] == []
    later, written = issue(soon, NOW + 2 * DAY)
    assert written == sorted([SERVER, CLIENT])
    assert agree(later)
    # Members with new certificates, and clients that have not read theirs anew: and vice versa.
    assert is_trusted({SERVER: later[SERVER], CLIENT: soon[CLIENT]}, CLIENT, SERVER)
    assert is_trusted({SERVER: soon[SERVER], CLIENT: later[CLIENT]}, SERVER, CLIENT)


def test_years_pass_and_everybody_always_agrees(first):
    secrets, now, authorities = first, NOW, set()
    for _ in range(250):
        now += 30 * DAY
        before = secrets
        secrets, _names = issue(secrets, now)
        assert agree(secrets)
        # Until it is restarted, everybody has what it had before.
        assert is_trusted({SERVER: secrets[SERVER], CLIENT: before[CLIENT]}, CLIENT, SERVER)
        assert is_trusted({SERVER: before[SERVER], CLIENT: secrets[CLIENT]}, SERVER, CLIENT)
        for name in (SERVER, CLIENT):
            assert certificate(secrets[name]).not_valid_after_utc > now + 60 * DAY
        authorities.add(entry(secrets[AUTHORITY]))
    assert 3 <= len(authorities) <= 4
    assert len(trusted(secrets[SERVER])) <= 2
