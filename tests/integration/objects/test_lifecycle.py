"""Lifecycle rules of a bucket, with a server that stores them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafscale.errors import OperatingError
from kafscale.storage.objects.s3.boto import BotoClient
from kafscale.storage.objects.s3.bucket_admin import BucketLifecycle, create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.lifecycle import TopicRetention, is_same
from services.scripted_server import response, scripted_server
from unit.storage.objects.s3.test_lifecycle import REFERENCE

pytestmark = pytest.mark.timeout(60)

DAY_MS = 86_400_000


@pytest.fixture
def bucket(moto_bucket, namespace) -> S3Bucket:
    """A bucket for one test, because it has only one set of rules."""
    own = replace(moto_bucket, name=f"rules-{namespace}")
    asyncio.run(create_bucket(own))
    return own


def rules(bucket: S3Bucket) -> Sequence[Any]:
    result: Sequence[Any] = BotoClient(bucket).read_lifecycle()["Rules"]
    return result


def write(bucket: S3Bucket, rules: Sequence[Any]) -> None:
    aws = BotoClient(bucket)
    aws.write_lifecycle(aws.read_lifecycle(), rules)


def test_topic_rules_are_applied_once(bucket):
    lifecycle = BucketLifecycle(bucket, "production")
    week, ever = TopicRetention("orders", 7 * DAY_MS), TopicRetention("audit", -1)

    async def scenario():
        assert await lifecycle.apply([week, ever])
        assert not await lifecycle.apply([ever, week])

    asyncio.run(scenario())
    result = {rule["ID"]: rule for rule in rules(bucket)}
    assert result.keys() == {"kafscale/production/_uploads", "kafscale/production/orders"}
    assert result["kafscale/production/orders"]["Filter"] == {"Prefix": "production/orders/"}
    assert result["kafscale/production/orders"]["Expiration"]["Days"] == 14


def test_rules_of_others_are_kept(bucket):
    """S-15."""
    write(bucket, REFERENCE)
    assert is_same(rules(bucket), REFERENCE)
    lifecycle = BucketLifecycle(bucket, "production")

    async def scenario():
        assert await lifecycle.apply([TopicRetention("orders", DAY_MS)])
        assert await lifecycle.apply([TopicRetention("orders", 2 * DAY_MS)])
        assert await lifecycle.apply([])

    asyncio.run(scenario())
    theirs = [rule for rule in rules(bucket) if not rule["ID"].startswith("kafscale/")]
    assert is_same(theirs, REFERENCE)
    assert [rule["ID"] for rule in rules(bucket)][-1] == "kafscale/production/_uploads"


def test_clusters_in_one_bucket_keep_their_own_rules(bucket):
    async def scenario():
        topics = [TopicRetention("orders", DAY_MS)]
        await BucketLifecycle(bucket, "one").apply(topics)
        await BucketLifecycle(bucket, "two").apply(topics)
        await BucketLifecycle(bucket, "one").apply([])

    asyncio.run(scenario())
    assert {rule["ID"] for rule in rules(bucket)} == {
        "kafscale/one/_uploads",
        "kafscale/two/_uploads",
        "kafscale/two/orders",
    }


def test_all_rules_can_be_removed(bucket):
    write(bucket, REFERENCE)
    write(bucket, [])
    assert rules(bucket) == []


def test_denied_access_to_lifecycle_rules_is_reported(moto_bucket):
    async def scenario():
        async with scripted_server(response(403, "AccessDenied")) as server:
            denied = replace(moto_bucket, endpoint=server.url)
            with pytest.raises(OperatingError, match=r"read lifecycle rules.*AccessDenied"):
                await BucketLifecycle(denied, "ns").apply([])

    asyncio.run(scenario())
