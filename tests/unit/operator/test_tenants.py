"""Tests of what clusters may have the operator do on their behalf."""

import asyncio

import pytest

from kafscale.config.sections.operator import Operator
from kafscale.operator.spec.s3 import S3Spec
from kafscale.operator.tenants import NotAllowedError, TenantRules, resolve

ROLE = "arn:aws:iam::1:role/shop/records"
PUBLIC, PRIVATE = "203.0.113.7", "10.1.2.3"


def rules(addresses=(), **settings):
    """Rules with these settings, for servers that all have these addresses."""

    async def resolved(_host):
        return addresses

    return TenantRules(Operator(**settings), resolved)


def uses_own_identity(allowed, namespace="shop", prefix="shop.web", **s3):
    """Whether the operator would use its own identity."""
    spec = S3Spec(**{"bucket": "records", **s3})
    try:
        rules(**allowed).check_own_identity(namespace, spec, prefix)
    except NotAllowedError:
        return False
    return True


@pytest.mark.parametrize(
    ("entry", "is_allowed"),
    [
        ("shop/records", True),
        ("*/records", True),
        ("sh*p/rec*", True),
        ("*/*", True),
        ("shop/records/shop.web", True),
        ("shop/records/*", True),
        ("shops/records", False),
        ("sho/records", False),
        ("shop/record", False),
        ("shop/record.", False),
        ("shop/records/shop.api", False),
    ],
)
def test_own_identity_needs_an_entry(entry, is_allowed):
    assert uses_own_identity({"allowed_buckets": (entry,)}) is is_allowed
    arn = "arn:aws:s3:::records"
    assert uses_own_identity({"allowed_buckets": (entry,)}, bucket=arn) is is_allowed
    assert not uses_own_identity({})


def test_prefix_of_another_namespace_needs_an_entry_of_its_own():
    shared = {"allowed_buckets": ("*/records",)}
    assert uses_own_identity(shared)
    assert not uses_own_identity(shared, prefix="bank.web")
    assert not uses_own_identity(shared, prefix="shopping.web")
    assert not uses_own_identity(shared, prefix="shop")
    with pytest.raises(NotAllowedError, match=r"'shop/records/prod' in operator\.allowedBuckets"):
        rules(**shared).check_own_identity("shop", S3Spec(bucket="records"), "prod")
    assert uses_own_identity({"allowed_buckets": ("shop/records/prod",)}, prefix="prod")


def test_role_needs_an_entry_with_the_own_identity():
    bucket = {"allowed_buckets": ("shop/records",)}
    assert not uses_own_identity(bucket, role_arn=ROLE)
    assert not uses_own_identity({"allowed_roles": (f"shop/{ROLE}",)}, role_arn=ROLE)
    for entry in (f"shop/{ROLE}", "*/arn:aws:iam::1:role/shop/*"):
        assert uses_own_identity(bucket | {"allowed_roles": (entry,)}, role_arn=ROLE)
    for entry in (f"bank/{ROLE}", "shop/arn:aws:iam::1:role/bank/*"):
        assert not uses_own_identity(bucket | {"allowed_roles": (entry,)}, role_arn=ROLE)


def test_s3_server_needs_an_entry_with_the_own_identity():
    bucket = {"allowed_buckets": ("shop/records",)}
    server = {"endpoint": "https://MinIO.storage:9000"}
    assert not uses_own_identity(bucket, **server)
    for entry in ("shop/minio.storage", "shop/minio.storage:9000", "*/*.storage"):
        assert uses_own_identity(bucket | {"allowed_endpoints": (entry,)}, **server)
    for entry in ("shop/minio.storage:80", "bank/minio.storage", "shop/minio"):
        assert not uses_own_identity(bucket | {"allowed_endpoints": (entry,)}, **server)


def test_replication_needs_entries_of_bucket_and_role():
    replication = {
        "replication": True,
        "replication_bucket": "arn:aws:s3:::copies",
        "replication_role_arn": ROLE,
    }
    buckets = ("shop/records", "shop/copies")
    complete = {"allowed_buckets": buckets, "allowed_roles": (f"shop/{ROLE}",)}
    assert uses_own_identity(complete, **replication)
    assert not uses_own_identity(complete | {"allowed_buckets": buckets[:1]}, **replication)
    assert not uses_own_identity(complete | {"allowed_roles": ()}, **replication)
    another = {"replication_bucket": "arn:aws:s3:eu-west-1:1:accesspoint/copies"}
    assert not uses_own_identity(complete, **replication | another)


def reaches(endpoint, addresses, *, path_style=True, **settings):
    """Whether the operator would connect to an S3 server, and to an etcd."""
    s3 = S3Spec(bucket="records", endpoint=f"http://{endpoint}", path_style=path_style)
    checked = rules(addresses, **settings)
    results = set()
    for check in (
        checked.check_s3_server("shop", s3),
        checked.check_etcd_servers("shop", [endpoint]),
    ):
        try:
            asyncio.run(check)
            results.add(True)
        except NotAllowedError:
            results.add(False)
    [result] = results
    return result


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",  # noqa: S104 - connections to it reach this host.
        "::",
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1%eth0",
        "224.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
    ],
)
def test_addresses_of_the_host_and_of_metadata_services_are_refused(address):
    assert not reaches("server.example.com:80", [PUBLIC, address])
    allowed = ("shop/server.example.com",)
    assert reaches("server.example.com:80", [PUBLIC, address], allowed_endpoints=allowed)
    assert not reaches("other.example.com:80", [PUBLIC, address], allowed_endpoints=allowed)


def test_other_addresses_and_unknown_names_are_left_to_the_connection():
    assert reaches("server.example.com:80", [PUBLIC, PRIVATE, "fd00::1"])
    assert reaches("server.example.com:80", [])


def test_bucket_in_the_host_name_is_resolved_as_well():
    async def resolved(host):
        return ["169.254.169.254"] if host == "records.example.com" else [PUBLIC]

    checked = TenantRules(Operator(), resolved)
    spec = S3Spec(bucket="records", endpoint="http://example.com")
    asyncio.run(checked.check_s3_server("shop", spec))
    spec = S3Spec(bucket="records", endpoint="http://example.com", path_style=False)
    with pytest.raises(NotAllowedError, match=r"'records.example.com' at 169.254.169.254"):
        asyncio.run(checked.check_s3_server("shop", spec))


@pytest.mark.parametrize(
    "host",
    [
        r"169.254.169.254\@example.com",
        "169.254.169.254#.example.com",
        "user@example.com:80",
        "example.com:80,other:80",
        "example.com%2f",
        "[::1",
        "①.example.com",
        "example.com:80?x",
        "",
    ],
)
def test_hosts_that_clients_may_parse_differently_are_refused(host):
    assert not reaches(host, [PUBLIC])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "::1", "localhost"])
def test_all_notations_of_loopback_are_resolved(host):
    addresses = asyncio.run(resolve(host))
    assert addresses
    assert not reaches("server:80", addresses)


def test_unknown_name_has_no_addresses():
    assert asyncio.run(resolve("a..b")) == []


def test_kube_etcd_needs_the_switch():
    with pytest.raises(NotAllowedError, match=r"operator\.allowKubeEtcd"):
        rules().check_kube_etcd()
    rules(allow_kube_etcd=True).check_kube_etcd()
