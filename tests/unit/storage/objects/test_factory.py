"""The object store factory: settings and layers."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.config import load
from kafscale.errors import ConfigError, ObjectExistsError
from kafscale.storage.formats import object_keys
from kafscale.storage.objects import factory
from kafscale.storage.objects.factory import probe_guarantees
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.s3.bucket_admin import BucketLifecycle
from kafscale.storage.objects.s3.bucket_config import S3Bucket

ENVIRON = {
    "KAFSCALE_S3_BUCKET": "records",
    "KAFSCALE_S3_REGION": "eu-west-1",
    "KAFSCALE_S3_ENDPOINT": "http://localhost:9000",
    "KAFSCALE_S3_PATH_STYLE": "true",
    "KAFSCALE_S3_ACCESS_KEY": "access",
    "KAFSCALE_S3_SECRET_KEY": "secret",
    "KAFSCALE_S3_SESSION_TOKEN": "token",
    "KAFSCALE_S3_KMS_ARN": "arn:aws:kms:key",
    "KAFSCALE_S3_ROLE_ARN": "arn:aws:iam:role",
    "KAFSCALE_S3_STS_ENDPOINT": "http://localhost:9001",
    "KAFSCALE_S3_STORAGE_CLASS": "STANDARD_IA",
    "KAFSCALE_S3_PART_SIZE": "6Mi",
    "KAFSCALE_S3_CONCURRENCY": "7",
    "KAFSCALE_S3_MAX_IDLE_CONNECTIONS": "8",
    "KAFSCALE_S3_IDLE_TIMEOUT": "9s",
    "KAFSCALE_S3_CONNECT_TIMEOUT": "3s",
    "KAFSCALE_S3_REQUEST_TIMEOUT": "4s",
}
BUCKET = S3Bucket(
    name="records",
    region="eu-west-1",
    endpoint="http://localhost:9000",
    path_style=True,
    access_key="access",
    secret_key="secret",  # noqa: S106 - not a real secret.
    session_token="token",  # noqa: S106 - not a real token.
    kms_key_arn="arn:aws:kms:key",
    role_arn="arn:aws:iam:role",
    sts_endpoint="http://localhost:9001",
    storage_class="STANDARD_IA",
    part_bytes=6 * 1024 * 1024,
    concurrency=7,
    idle_connections_max=8,
    idle_timeout_ms=9000,
    connect_timeout_ms=3000,
    request_timeout_ms=4000,
)


def test_all_settings_are_passed_on():
    assert factory.bucket(load(ENVIRON)) == BUCKET
    environ = {
        "KAFSCALE_S3_BUCKET": "records",
        "KAFSCALE_S3_CREDENTIAL_SOURCE": "file",
        "KAFSCALE_S3_CREDENTIALS_FILE": "/etc/keys",
        "KAFSCALE_S3_PROFILE": "kafscale",
        "KAFSCALE_S3_SERVER_SIDE_ENCRYPTION": "AES256",
    }
    assert factory.bucket(load(environ)) == S3Bucket(
        name="records",
        credential_source="file",
        credentials_file="/etc/keys",
        profile="kafscale",
        server_side_encryption="AES256",
    )


def test_replica_inherits_settings_and_has_a_shorter_timeout():
    copy = {"KAFSCALE_S3_READ_BUCKET": "copy"}
    fast = {"connect_timeout_ms": 2000, "request_timeout_ms": 2000}
    assert factory.read_bucket(load(ENVIRON | copy)) == replace(BUCKET, name="copy", **fast)
    elsewhere = copy | {
        "KAFSCALE_S3_READ_REGION": "us-west-2",
        "KAFSCALE_S3_READ_ENDPOINT": "http://localhost:9002",
    }
    assert factory.read_bucket(load(ENVIRON | elsewhere)) == replace(
        BUCKET, name="copy", region="us-west-2", endpoint="http://localhost:9002", **fast
    )


def test_only_segments_are_archived():
    assert factory._is_archived(object_keys.segment_key("ns", "topic", 0, 0))
    assert not factory._is_archived(object_keys.index_key("ns", "topic", 0, 0))
    assert not factory._is_archived(object_keys.wal_key("ns", 0, 1, 2))


@pytest.mark.parametrize(
    ("operation", "key", "expected"),
    [
        ("put", object_keys.wal_key("ns", 0, 1, 2), True),
        ("get", object_keys.wal_key("ns", 0, 1, 2), False),
        ("put", "ns/_probe/health", True),
        ("get", "ns/_probe/health", True),
        ("put", object_keys.segment_key("ns", "topic", 0, 0), False),
        ("get_range", object_keys.segment_key("ns", "topic", 0, 0), False),
    ],
)
def test_wal_uploads_are_urgent(operation, key, expected):
    assert factory._urgency("ns")(operation, key) is expected


@pytest.mark.parametrize("requests_max", [2, 3, 64, 10_000])
@pytest.mark.parametrize("uploads_max", [1, 8, 1024])
def test_any_request_limit_leaves_slots_for_both_kinds(requests_max, uploads_max):
    environ = ENVIRON | {
        "KAFSCALE_S3_MAX_REQUESTS": str(requests_max),
        "KAFSCALE_STORAGE_MAX_WAL_UPLOADS": str(uploads_max),
    }
    store, _ = factory.create_store(load(environ), lambda *_: None, Random(1))
    slots = store._inner._slots
    assert slots._free == requests_max
    assert 1 <= slots._reserved <= min(uploads_max + 1, requests_max - 1)


@pytest.mark.parametrize("key_arn", ["", "arn:aws:kms:key"])
def test_missing_kms_key_is_logged_once(key_arn, capsys):
    """S-04."""
    environ = ENVIRON | {"KAFSCALE_S3_KMS_ARN": key_arn, "KAFSCALE_S3_READ_BUCKET": "copy"}
    factory.create_store(load(environ), lambda *_: None, Random(1))
    assert capsys.readouterr().out.count("set s3.kmsKeyArn") == (0 if key_arn else 1)


def test_lifecycle_rules_are_managed_only_if_configured():
    assert factory.lifecycle(load(ENVIRON)) is None
    requested = ENVIRON | {"KAFSCALE_S3_MANAGE_LIFECYCLE": "true"}
    assert isinstance(factory.lifecycle(load(requested)), BucketLifecycle)


class CarelessStore(MemoryObjectStore):
    """A store that ignores `create`."""

    async def put(self, key, parts, *, create=True):
        del create
        await super().put(key, parts, create=False)


class LyingStore(MemoryObjectStore):
    """A store that reports that the key exists, but overwrites the object."""

    async def put(self, key, parts, *, create=True):
        try:
            await super().put(key, parts, create=create)
        except ObjectExistsError:
            await super().put(key, parts, create=False)
            raise


class ForgetfulStore(MemoryObjectStore):
    """A store that ignores the ETag of a replacement."""

    async def replace(self, key, parts, etag):
        del etag
        await super().put(key, parts, create=False)


async def keys(store):
    return [info.key async for chunk in store.list("ns/") for info in chunk]


def test_correct_store_passes():
    store = MemoryObjectStore()

    async def scenario():
        await probe_guarantees(store, "ns", Random(1))
        assert await keys(store) == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("store", "ignored"),
    [
        (CarelessStore(), "If-None-Match"),
        (LyingStore(), "If-None-Match"),
        (ForgetfulStore(), "If-Match"),
    ],
    ids=["careless", "lying", "forgetful"],
)
def test_store_that_overwrites_is_rejected(store, ignored):
    async def scenario():
        with pytest.raises(ConfigError, match=f"ignores {ignored} on PUT"):
            await probe_guarantees(store, "ns", Random(1))
        assert await keys(store) == []

    asyncio.run(scenario())


def test_store_whose_listings_lag_is_rejected():
    store = FaultyObjectStore(MemoryObjectStore(), [], random=Random(1))
    store.list_lag_ms = 1000

    async def scenario():
        with pytest.raises(ConfigError, match="does not list an object that was just written"):
            await probe_guarantees(store, "ns", Random(1))
        store.list_lag_ms = 0
        assert await keys(store) == []

    asyncio.run(scenario())


def test_lost_responses_do_not_mislead_the_probe():
    async def no_time(_seconds: float) -> None:
        pass

    async def scenario():
        rule = Rule(fault=Fault.RESPONSE_LOST, operations=frozenset({"put"}), times_max=1)
        faulty = FaultyObjectStore(MemoryObjectStore(), [rule], random=Random(1))
        store = RetryingObjectStore(faulty, attempts_max=3, random=Random(2), sleep=no_time)
        await probe_guarantees(store, "ns", Random(3))

    asyncio.run(scenario())
