"""What only an S3 store has: requests, error responses, credentials and the environment."""

import asyncio
import traceback
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from email.message import Message

import obstore
import pytest

from kafscale.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.errors import MissingBucketError
from kafscale.storage.objects.s3.store import S3ObjectStore
from services.process import free_port
from services.s3_server import ACCESS_KEY, SECRET_KEY
from services.scripted_server import response, scripted_server

pytestmark = pytest.mark.timeout(60)

BUCKET = S3Bucket(
    name="bucket",
    path_style=True,
    access_key=ACCESS_KEY,
    secret_key=SECRET_KEY,
    request_timeout_ms=5000,
)


@asynccontextmanager
async def scripted_store(
    http_response: str | None, *, resets: bool = False
) -> AsyncIterator[tuple[S3ObjectStore, list[str]]]:
    """A store with a server that sends the same response to all requests, and the requests."""
    async with scripted_server(http_response, resets=resets) as server:
        store = S3ObjectStore(replace(BUCKET, endpoint=server.url, request_timeout_ms=300))
        try:
            yield store, server.requests
        finally:
            await store.close()


@pytest.mark.parametrize(
    ("http_response", "expected"),
    [
        (response(503, "SlowDown"), StoreUnavailableError),
        (response(503, "ServiceUnavailable"), StoreUnavailableError),
        (response(500, "InternalError"), StoreUnavailableError),
        (response(400, "RequestTimeout"), StoreUnavailableError),
        (response(429), StoreUnavailableError),
        (response(409, "ConditionalRequestConflict"), StoreUnavailableError),
        (response(412, "PreconditionFailed"), ObjectExistsError),
        (response(304), ObjectExistsError),
        (response(400, "InvalidRequest"), OperatingError),
        (response(403, "AccessDenied"), OperatingError),
        (response(404, "NoSuchBucket"), MissingBucketError),
        (response(501, "NotImplemented"), OperatingError),
        (response(301, "PermanentRedirect"), OperatingError),
        (response(400, "AuthorizationHeaderMalformed"), OperatingError),
        (response(400, "ExpiredToken"), StoreUnavailableError),
        (None, StoreUnavailableError),
    ],
)
def test_failed_put_is_classified_and_sent_once(http_response, expected):
    async def scenario():
        async with scripted_store(http_response) as (store, requests):
            with pytest.raises(OperatingError) as failure:
                await store.put("ns/key", [b"body"])
            assert type(failure.value) is expected
            assert "ns/key" in str(failure.value)
            assert len(requests) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("http_response", "expected"),
    [
        (response(503, "SlowDown"), StoreUnavailableError),
        (response(404, "NoSuchKey"), ObjectNotFoundError),
        (response(404, "NoSuchBucket"), MissingBucketError),
        (response(403, "AccessDenied"), OperatingError),
        (None, StoreUnavailableError),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntoo short", StoreUnavailableError),
    ],
)
def test_failed_get_is_classified(http_response, expected):
    async def scenario():
        async with scripted_store(http_response) as (store, _):
            with pytest.raises(OperatingError) as failure:
                await store.get("ns/key")
            assert type(failure.value) is expected

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "http_response", [None, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntoo short"]
)
def test_connection_reset_is_retriable(http_response):
    """S-08."""

    async def scenario():
        async with scripted_store(http_response, resets=True) as (store, requests):
            calls = [store.get("ns/key"), store.get_range("ns/key", 0, 9), anext(store.list("ns/"))]
            for call in calls:
                with pytest.raises(StoreUnavailableError):
                    await call
            assert len(requests) == len(calls)
        async with scripted_store(None, resets=True) as (store, requests):
            for call in (store.put("ns/key", [b"x"]), store.head("ns/key")):
                with pytest.raises(StoreUnavailableError):
                    await call
            assert len(requests) == 2

    asyncio.run(scenario())


def test_create_only_put_is_one_conditional_request():
    async def scenario():
        async with scripted_store(response(200)) as (store, requests):
            with pytest.raises(OperatingError):  # The scripted response lacks an ETag.
                await store.put("ns/key", [bytes(11_000_000)])
            (request,) = requests
            assert request.startswith("PUT /bucket/ns/key HTTP/1.1\r\n")
            assert "if-none-match: *\r\n" in request.lower()
            assert "content-type: application/octet-stream\r\n" in request.lower()

    asyncio.run(scenario())


def test_refused_connection_is_unavailable():
    store = S3ObjectStore(replace(BUCKET, endpoint=f"http://127.0.0.1:{free_port()}"))

    async def scenario():
        with pytest.raises(StoreUnavailableError, match="Connection refused"):
            await store.head("ns/key")
        with pytest.raises(StoreUnavailableError):
            await anext(store.list("ns/"))
        with pytest.raises(StoreUnavailableError):
            await store.delete(["ns/key"])

    asyncio.run(scenario())


@pytest.mark.timeout(600)
def test_wrong_credentials_fail_and_are_not_shown(real_bucket):
    wrong = replace(real_bucket, secret_key="a-wrong-secret-key")  # noqa: S106 - on purpose.
    store = S3ObjectStore(wrong)

    async def scenario():
        for call in (store.put("ns/key", [b"x"]), store.get("ns/key"), store.delete(["ns/key"])):
            with pytest.raises(OperatingError) as failure:
                await call
            assert not isinstance(failure.value, StoreUnavailableError)
            shown = "".join(traceback.format_exception(failure.value)) + repr(failure.value)
            assert "status 403" in shown
            assert wrong.access_key not in shown
            assert wrong.secret_key not in shown

    asyncio.run(scenario())
    assert wrong.access_key not in repr(wrong)
    assert wrong.secret_key not in repr(wrong)


@pytest.mark.timeout(600)
def test_missing_bucket_is_not_a_missing_object(real_bucket):
    store = S3ObjectStore(replace(real_bucket, name="no-such-bucket"))

    async def scenario():
        for call in (store.put("ns/key", [b"x"]), store.get("ns/key"), anext(store.list("ns/"))):
            with pytest.raises(MissingBucketError, match=r"set s3\.createBucket to true"):
                await call

    asyncio.run(scenario())


def test_settings_override_the_environment(moto_bucket, monkeypatch, namespace):
    for variable in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of other keys")
    store = S3ObjectStore(moto_bucket)

    async def scenario():
        await store.put(f"{namespace}/a", [b"x"])
        assert await store.get(f"{namespace}/a") == b"x"

    asyncio.run(scenario())


def test_bucket_can_be_named_by_its_arn(moto_bucket, namespace):
    by_name = S3ObjectStore(moto_bucket)
    by_arn = S3ObjectStore(replace(moto_bucket, name=f"arn:aws:s3:::{moto_bucket.name}"))

    async def scenario():
        await by_arn.put(f"{namespace}/a", [b"x"])
        assert await by_name.get(f"{namespace}/a") == b"x"

    asyncio.run(scenario())


@pytest.mark.parametrize("create", [True, False])
def test_objects_have_configured_type_encryption_and_storage_class(moto_bucket, namespace, create):
    key_arn = "arn:aws:kms:us-east-1:123456789012:key/some-key"
    bucket = replace(moto_bucket, kms_key_arn=key_arn, storage_class="STANDARD_IA")
    store = S3ObjectStore(bucket, is_archived=lambda key: key.endswith("/a"))

    async def scenario():
        for name in ("a", "b"):
            await store.put(f"{namespace}/{name}", [bytes(6_000_000)], create=create)

    asyncio.run(scenario())
    archived, other = (headers_of(store, f"{namespace}/{name}") for name in ("a", "b"))
    for headers in (archived, other):
        assert headers["content-type"] == "application/octet-stream"
        assert headers["x-amz-server-side-encryption"] == "aws:kms"
        assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == key_arn
    assert archived["x-amz-storage-class"] == "STANDARD_IA"
    assert other["x-amz-storage-class"] is None


def test_kms_bucket_key_is_enabled():
    """Otherwise every PUT would cause a request to KMS."""
    kms_key_arn = "arn:aws:kms:us-east-1:123456789012:key/some-key"

    async def scenario():
        async with scripted_server(response(200)) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url, kms_key_arn=kms_key_arn))
            with pytest.raises(OperatingError):  # The scripted response lacks an ETag.
                await store.put("ns/key", [b"x"])
            header = "x-amz-server-side-encryption-bucket-key-enabled: true"
            assert header in server.requests[0].lower()
            await store.close()

    asyncio.run(scenario())


def test_uploads_request_encryption_if_configured():
    """S-04: reads must not, because servers refuse the header there."""

    async def scenario():
        async with scripted_server(response(200)) as server:
            encrypted = replace(BUCKET, endpoint=server.url, server_side_encryption="AES256")
            store = S3ObjectStore(encrypted)
            with pytest.raises(OperatingError):  # The scripted response lacks an ETag.
                await store.put("ns/key", [b"x"])
            await store.get("ns/key")
            put, get = (request.lower() for request in server.requests)
            assert "x-amz-server-side-encryption: aes256\r\n" in put
            assert "x-amz-server-side-encryption" not in get
            await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("create", [True, False], ids=["one request", "multipart"])
def test_real_server_accepts_encryption(real_bucket, namespace, create):
    store = S3ObjectStore(replace(real_bucket, server_side_encryption="AES256"))

    async def scenario():
        await store.put(f"{namespace}/a", [bytes(6_000_000)], create=create)
        assert await store.get(f"{namespace}/a") == bytes(6_000_000)
        await store.close()

    asyncio.run(scenario())


def test_unset_options_send_no_headers():
    """A server may not support storage classes; the bucket has a default encryption."""

    async def scenario():
        async with scripted_store(response(200)) as (store, requests):
            with pytest.raises(OperatingError):  # The scripted response lacks an ETag.
                await store.put("ns/key", [b"x"])
            assert "x-amz-storage-class" not in requests[0].lower()
            assert "x-amz-server-side-encryption" not in requests[0].lower()

    asyncio.run(scenario())


def headers_of(store: S3ObjectStore, key: str) -> Message:
    url = obstore.sign(store._store, "GET", key, timedelta(minutes=1))
    with urllib.request.urlopen(url, timeout=10) as http_response:  # noqa: S310 - to our own server.
        return http_response.headers
