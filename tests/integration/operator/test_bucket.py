"""Buckets looked after at a server that has rules, replication and regions."""

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest

from kafscale.metadata.schema.model import Topic
from kafscale.operator.cluster.bucket import RULES_MS, BucketReconciler
from kafscale.operator.spec.cluster import Cluster, read_cluster
from kafscale.storage.objects import S3Bucket, create_bucket
from services import s3_server
from services.memory_kube import MemoryKube

pytestmark = pytest.mark.timeout(60)

DAY_MS = 86_400_000
ROLE = "arn:aws:iam::123456789012:role/replication"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Bucket]:
    with s3_server.moto_server(tmp_path_factory.mktemp("moto")) as bucket:
        yield bucket


class World:
    """A keeper, the keys of a bucket, and a client of the server that it is at."""

    def __init__(self, server: S3Bucket) -> None:
        self.bucket = replace(server, name=f"kafscale-{uuid4().hex[:8]}-us-east-1")
        self.now_ms = 1_750_000_000_000
        self.kube = MemoryKube()
        self.keeper = BucketReconciler(self.kube, lambda: self.now_ms)
        asyncio.run(self.kube.create(_keys(server)))
        self.s3: Any = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            region_name="us-east-1",
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
        )

    def cluster(self, **s3: Any) -> Cluster:
        wanted = {
            "bucket": self.bucket.name,
            "endpoint": self.bucket.endpoint,
            "credentialsSecretRef": "keys",
            **s3,
        }
        metadata = {"name": "shop", "namespace": "shops", "uid": "u"}
        return read_cluster({"metadata": metadata, "spec": {"brokers": {}, "s3": wanted}})

    def verdicts(self, cluster: Cluster) -> dict[str, tuple[str, str]]:
        """What is found of the bucket: the status and reason of each condition."""
        state = asyncio.run(self.keeper.reconcile(cluster))
        return {each.type: (each.status, each.reason) for each in state.conditions}

    def rule(self, cluster: Cluster, *topics: Topic) -> str:
        [condition] = asyncio.run(self.keeper.reconcile_lifecycle(cluster, topics))
        return condition.status

    def rules(self) -> dict[str, Any]:
        """The expiration of what each rule is about, in days."""
        found = self.s3.get_bucket_lifecycle_configuration(Bucket=self.bucket.name)["Rules"]
        return {
            rule["Filter"]["Prefix"]: rule["Expiration"]["Days"]
            for rule in found
            if "Expiration" in rule
        }


@pytest.fixture
def world(server: S3Bucket) -> World:
    return World(server)


def _keys(server: S3Bucket) -> dict[str, Any]:
    """The Secret."""
    entries = s3_server.key_variables(server)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys", "namespace": "shops"},
        "data": {name: base64.b64encode(text.encode()).decode() for name, text in entries.items()},
    }


def topic(name: str, **configs: str) -> Topic:
    return Topic(name=name, id=bytes(16), partitions=1, configs=configs, created_ms=0)


def test_a_bucket_is_made_only_on_request(world: World) -> None:
    assert world.verdicts(world.cluster())["BucketReady"] == ("False", "Unusable")
    environment = world.bucket.name.split("-")[1]
    asking = world.cluster(createBucket=True, environment=environment)
    assert world.verdicts(asking)["BucketReady"] == ("True", "Created")
    assert world.verdicts(world.cluster())["BucketReady"] == ("True", "Accessible")


def test_a_bucket_in_another_region_is_not_used(world: World) -> None:
    asyncio.run(create_bucket(replace(world.bucket, region="eu-west-1")))
    assert world.verdicts(world.cluster())["BucketReady"] == ("False", "RegionMismatch")
    assert world.verdicts(world.cluster(region="eu-west-1"))["BucketReady"][0] == "True"


def test_rules_follow_topics(world: World) -> None:
    asyncio.run(create_bucket(world.bucket))
    cluster = world.cluster()
    day = topic("day", **{"retention.ms": str(DAY_MS)})
    kept = topic("kept", **{"cleanup.policy": "compact"})
    assert world.rule(cluster, topic("week"), day, kept) == "True"
    first = world.rules()
    # They are a safety net below the brokers' own retention, and so never earlier.
    assert first.keys() == {"shops.shop/week/", "shops.shop/day/"}
    assert first["shops.shop/week/"] > 7
    assert 1 < first["shops.shop/day/"] < first["shops.shop/week/"]
    longer = topic("day", **{"retention.ms": str(30 * DAY_MS)})
    assert world.rule(cluster, longer) == "True"
    second = world.rules()
    assert second.keys() == {"shops.shop/day/"}
    assert second["shops.shop/day/"] > 30


def test_rules_that_somebody_takes_away_are_written_again(world: World) -> None:
    asyncio.run(create_bucket(world.bucket))
    cluster, week = world.cluster(), topic("week")
    assert world.rule(cluster, week) == "True"
    before = world.rules()
    world.s3.delete_bucket_lifecycle(Bucket=world.bucket.name)
    world.now_ms += RULES_MS - 1
    assert world.rule(cluster, week) == "True"
    with pytest.raises(world.s3.exceptions.ClientError):
        world.rules()
    world.now_ms += 1
    assert world.rule(cluster, week) == "True"
    assert world.rules() == before


def test_without_a_bucket_there_are_no_rules(world: World) -> None:
    assert world.rule(world.cluster(), topic("week")) == "False"
    unmanaged = world.cluster(manageLifecycle=False)
    assert asyncio.run(world.keeper.reconcile_lifecycle(unmanaged, [topic("week")])) == []


def test_a_bucket_is_copied_to_another_region(world: World) -> None:
    asyncio.run(create_bucket(world.bucket))
    copy = replace(world.bucket, name=f"{world.bucket.name}-copy", region="eu-west-1")
    asyncio.run(create_bucket(copy))
    world.s3.put_bucket_versioning(Bucket=copy.name, VersioningConfiguration={"Status": "Enabled"})
    cluster = world.cluster(
        replication=True, replicationBucket=f"arn:aws:s3:::{copy.name}", replicationRoleArn=ROLE
    )
    assert world.verdicts(cluster)["Replication"] == ("True", "SetUp")
    told = world.s3.get_bucket_replication(Bucket=world.bucket.name)["ReplicationConfiguration"]
    assert told["Role"] == ROLE
    [rule] = told["Rules"]
    assert rule["ID"] == "kafscale/shops.shop"  # The prefix in its filter is lost on moto.
    assert rule["Destination"]["Bucket"] == f"arn:aws:s3:::{copy.name}"
    assert world.s3.get_bucket_versioning(Bucket=world.bucket.name)["Status"] == "Enabled"


@pytest.mark.timeout(600)  # The first to come builds the S3 server.
def test_a_server_without_rules_and_copies_is_told_of_and_used(tmp_path: Path) -> None:
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    with s3_server.s3_server(tmp_path) as plain:
        world = World(plain)
        asyncio.run(create_bucket(world.bucket))
        cluster = world.cluster(
            replication=True,
            replicationBucket="arn:aws:s3:::nobody-has-made-it",
            replicationRoleArn=ROLE,
        )
        verdicts = world.verdicts(cluster)
        assert verdicts["Replication"] == ("False", "NotSetUp")
        assert verdicts["BucketReady"] == ("True", "Accessible")
        assert world.rule(cluster, topic("week")) == "False"
