"""Tests of the bucket reconciler against a server with lifecycle rules, replication and regions."""

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from kafscale.config.sections.operator import Operator
from kafscale.metadata.schema.model import Topic
from kafscale.operator.cluster.bucket import LIFECYCLE_INTERVAL_MS, BucketReconciler
from kafscale.operator.spec.cluster import Cluster, read_cluster
from kafscale.operator.tenants import NotAllowedError, TenantRules
from kafscale.storage.objects.s3.bucket_admin import create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from services import s3_server
from services.memory_kube import MemoryKube

pytestmark = pytest.mark.timeout(60)

DAY_MS = 86_400_000
ROLE = "arn:aws:iam::123456789012:role/replication"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Bucket]:
    with s3_server.moto_server(tmp_path_factory.mktemp("moto")) as bucket:
        yield bucket


class BucketFixture:
    """A reconciler, the keys of a bucket, and a client of its server."""

    def __init__(self, server: S3Bucket) -> None:
        self.bucket = replace(server, name=f"kafscale-{uuid4().hex[:8]}-us-east-1")
        self.now_ms = 1_750_000_000_000
        self.kube = MemoryKube()
        self.rules = TenantRules(
            Operator(
                allowed_endpoints=("*/127.0.0.1",), allowed_buckets=(f"shops/{self.bucket.name}",)
            )
        )
        self.reconciler = BucketReconciler(self.kube, lambda: self.now_ms, self.rules)
        asyncio.run(self.kube.create(_keys_secret(server)))
        self.s3: Any = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
        )

    def cluster(self, namespace: str = "shops", **s3: Any) -> Cluster:
        spec = {
            "bucket": self.bucket.name,
            "endpoint": self.bucket.endpoint,
            "credentialsSecretRef": "keys",
            **s3,
        }
        metadata = {"name": "shop", "namespace": namespace, "uid": "u"}
        return read_cluster({"metadata": metadata, "spec": {"brokers": {}, "s3": spec}})

    def conditions(self, cluster: Cluster) -> dict[str, tuple[str, str]]:
        """The status and reason of each condition of the bucket."""
        state = asyncio.run(self.reconciler.reconcile(cluster))
        return {each.type: (each.status, each.reason) for each in state.conditions}

    def apply_lifecycle(self, cluster: Cluster, *topics: Topic) -> str:
        [condition] = asyncio.run(self.reconciler.reconcile_lifecycle(cluster, topics))
        return condition.status

    def expirations(self) -> dict[str, Any]:
        """The expiration of each lifecycle rule in days, by prefix."""
        rules = self.s3.get_bucket_lifecycle_configuration(Bucket=self.bucket.name)["Rules"]
        return {
            rule["Filter"]["Prefix"]: rule["Expiration"]["Days"]
            for rule in rules
            if "Expiration" in rule
        }


@pytest.fixture
def fixture(server: S3Bucket) -> BucketFixture:
    return BucketFixture(server)


def _keys_secret(server: S3Bucket) -> dict[str, Any]:
    """The Secret with the keys."""
    entries = s3_server.key_variables(server)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys", "namespace": "shops"},
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in entries.items()},
    }


def topic(name: str, **configs: str) -> Topic:
    return Topic(name=name, id=bytes(16), partitions=1, configs=configs, created_ms=0)


def test_bucket_is_created_only_on_request(fixture: BucketFixture) -> None:
    assert fixture.conditions(fixture.cluster())["BucketReady"] == ("False", "Unusable")
    environment = fixture.bucket.name.split("-")[1]
    with_creation = fixture.cluster(createBucket=True, environment=environment)
    assert fixture.conditions(with_creation)["BucketReady"] == ("True", "Created")
    assert fixture.conditions(fixture.cluster())["BucketReady"] == ("True", "Accessible")


def test_own_identity_is_for_the_namespaces_of_the_settings(
    fixture: BucketFixture, server: S3Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    asyncio.run(create_bucket(fixture.bucket))
    victim = fixture.cluster(credentialsSecretRef="")
    assert fixture.conditions(victim)["BucketReady"] == ("True", "Accessible")
    attacker = fixture.cluster("attacker", credentialsSecretRef="")
    assert fixture.conditions(attacker)["BucketReady"] == ("False", "NotAllowed")
    [lifecycle] = asyncio.run(fixture.reconciler.reconcile_lifecycle(attacker, []))
    assert (lifecycle.status, lifecycle.reason) == ("False", "NotWritten")
    with pytest.raises(NotAllowedError):
        asyncio.run(fixture.reconciler.bucket_config(attacker, attacker.spec.snapshots_s3))


def test_bucket_in_another_region_is_not_used(fixture: BucketFixture) -> None:
    asyncio.run(create_bucket(replace(fixture.bucket, region="eu-west-1")))
    assert fixture.conditions(fixture.cluster())["BucketReady"] == ("False", "RegionMismatch")
    assert fixture.conditions(fixture.cluster(region="eu-west-1"))["BucketReady"][0] == "True"


def test_lifecycle_rules_follow_topics(fixture: BucketFixture) -> None:
    asyncio.run(create_bucket(fixture.bucket))
    cluster = fixture.cluster()
    day = topic("day", **{"retention.ms": str(DAY_MS)})
    compacted = topic("kept", **{"cleanup.policy": "compact"})
    assert fixture.apply_lifecycle(cluster, topic("week"), day, compacted) == "True"
    first = fixture.expirations()
    # They supplement the brokers' own retention, so never earlier.
    assert first.keys() == {"shops.shop/week/", "shops.shop/day/"}
    assert first["shops.shop/week/"] > 7
    assert 1 < first["shops.shop/day/"] < first["shops.shop/week/"]
    longer = topic("day", **{"retention.ms": str(30 * DAY_MS)})
    assert fixture.apply_lifecycle(cluster, longer) == "True"
    second = fixture.expirations()
    assert second.keys() == {"shops.shop/day/"}
    assert second["shops.shop/day/"] > 30


def test_archive_rule_follows_the_spec(fixture: BucketFixture) -> None:
    asyncio.run(create_bucket(fixture.bucket))

    def transitions(archive: dict[str, Any]) -> dict[str, Any]:
        """The rules that move objects, by prefix, after the spec was applied."""
        assert fixture.apply_lifecycle(fixture.cluster(archive=archive), topic("week")) == "True"
        rules = fixture.s3.get_bucket_lifecycle_configuration(Bucket=fixture.bucket.name)["Rules"]
        return {
            rule["Filter"]["Prefix"]: rule["Transitions"] for rule in rules if "Transitions" in rule
        }

    prefix = "archive/shops.shop/"
    assert transitions({"enabled": True}) == {prefix: [{"Days": 30, "StorageClass": "GLACIER"}]}
    assert transitions({"enabled": True, "afterDays": 90, "storageClass": "DEEP_ARCHIVE"}) == {
        prefix: [{"Days": 90, "StorageClass": "DEEP_ARCHIVE"}]
    }
    assert transitions({"enabled": False}) == {}


def test_deleted_lifecycle_rules_are_written_again(fixture: BucketFixture) -> None:
    asyncio.run(create_bucket(fixture.bucket))
    cluster, week = fixture.cluster(), topic("week")
    assert fixture.apply_lifecycle(cluster, week) == "True"
    before = fixture.expirations()
    fixture.s3.delete_bucket_lifecycle(Bucket=fixture.bucket.name)
    fixture.now_ms += LIFECYCLE_INTERVAL_MS - 1
    assert fixture.apply_lifecycle(cluster, week) == "True"
    with pytest.raises(fixture.s3.exceptions.ClientError):
        fixture.expirations()
    fixture.now_ms += 1
    assert fixture.apply_lifecycle(cluster, week) == "True"
    assert fixture.expirations() == before


def test_lifecycle_fails_without_a_bucket(fixture: BucketFixture) -> None:
    assert fixture.apply_lifecycle(fixture.cluster(), topic("week")) == "False"
    unmanaged = fixture.cluster(manageLifecycle=False)
    assert asyncio.run(fixture.reconciler.reconcile_lifecycle(unmanaged, [topic("week")])) == []


def test_bucket_is_replicated_to_another_region(fixture: BucketFixture) -> None:
    asyncio.run(create_bucket(fixture.bucket))
    copy = replace(fixture.bucket, name=f"{fixture.bucket.name}-copy", region="eu-west-1")
    asyncio.run(create_bucket(copy))
    fixture.s3.put_bucket_versioning(
        Bucket=copy.name, VersioningConfiguration={"Status": "Enabled"}
    )
    cluster = fixture.cluster(
        replication=True, replicationBucket=f"arn:aws:s3:::{copy.name}", replicationRoleArn=ROLE
    )
    assert fixture.conditions(cluster)["Replication"] == ("True", "SetUp")
    configured = fixture.s3.get_bucket_replication(Bucket=fixture.bucket.name)[
        "ReplicationConfiguration"
    ]
    assert configured["Role"] == ROLE
    [rule] = configured["Rules"]
    assert rule["ID"] == "kafscale/shops.shop"  # The prefix in its filter is lost on moto.
    assert rule["Destination"]["Bucket"] == f"arn:aws:s3:::{copy.name}"
    assert fixture.s3.get_bucket_versioning(Bucket=fixture.bucket.name)["Status"] == "Enabled"


@pytest.mark.timeout(600)  # The first run builds the S3 server.
def test_server_without_lifecycle_and_replication_is_usable(tmp_path: Path) -> None:
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    with s3_server.s3_server(tmp_path) as simple:
        fixture = BucketFixture(simple)
        asyncio.run(create_bucket(fixture.bucket))
        cluster = fixture.cluster(
            replication=True,
            replicationBucket="arn:aws:s3:::missing-bucket",
            replicationRoleArn=ROLE,
        )
        conditions = fixture.conditions(cluster)
        assert conditions["Replication"] == ("False", "NotSetUp")
        assert conditions["BucketReady"] == ("True", "Accessible")
        assert fixture.apply_lifecycle(cluster, topic("week")) == "False"
