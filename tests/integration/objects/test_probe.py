"""The probes of a bucket at start: problems are reported with advice."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from kafscale.errors import ConfigError, OperatingError
from kafscale.storage.objects.factory import probe_access, probe_guarantees
from kafscale.storage.objects.s3.bucket_admin import create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from services.s3_server import ACCESS_KEY, SECRET_KEY
from services.scripted_server import response, scripted_server

pytestmark = pytest.mark.timeout(600)  # The first run builds the S3 server.

BUCKET = S3Bucket(name="bucket", path_style=True, access_key=ACCESS_KEY, secret_key=SECRET_KEY)


class UnconditionalServer:
    """Stores objects and ignores conditional headers."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def __call__(self, head: str, body: bytes) -> bytes:
        method, path, _ = head.split(" ", 2)
        if method == "PUT":
            self.objects[path] = body
            return self._response(b"")
        return self._response(self.objects.get(path, b"<DeleteResult></DeleteResult>"))

    def _response(self, body: bytes) -> bytes:
        head = (
            'HTTP/1.1 200 OK\r\nETag: "x"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n'
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def test_server_that_ignores_if_none_match_is_rejected():
    async def scenario():
        async with scripted_server(UnconditionalServer()) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url))
            with pytest.raises(ConfigError, match="use a server version with conditional writes"):
                await probe_guarantees(store, "ns", Random(1))
            assert "if-none-match: *" in server.requests[0].lower()
            await store.close()

    asyncio.run(scenario())


def test_server_without_if_none_match_is_rejected():
    async def scenario():
        async with scripted_server(response(501, "NotImplemented")) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url))
            with pytest.raises(OperatingError, match="lacks a feature that Kafscale needs"):
                await probe_guarantees(store, "ns", Random(1))
            await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("http_response", "advice"),
    [
        (response(404, "NoSuchBucket"), "create the bucket or set s3.createBucket"),
        (response(301, "PermanentRedirect"), "set s3.region"),
        (response(400, "AuthorizationHeaderMalformed"), "set s3.region"),
        (response(403, "AccessDenied"), "s3:ListBucket"),
        (response(403, "InvalidAccessKeyId"), "check the credentials"),
        (response(403, "RequestTimeTooSkewed"), "set the clock"),
    ],
)
def test_unusable_bucket_is_reported_with_advice(http_response, advice):
    async def scenario():
        async with scripted_server(http_response) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url))
            with pytest.raises(OperatingError, match=advice):
                await probe_access(store, "ns", None)
            await store.close()

    asyncio.run(scenario())


@pytest.fixture(params=["moto", "s3"])
def bucket(request) -> S3Bucket:
    result: S3Bucket = request.getfixturevalue(
        f"{'moto' if request.param == 'moto' else 'real'}_bucket"
    )
    return result


def test_missing_bucket_is_created_only_if_configured(bucket, namespace):
    missing = replace(bucket, name=f"created-{namespace}")

    async def scenario():
        store = S3ObjectStore(missing)
        with pytest.raises(OperatingError, match="NoSuchBucket"):
            await probe_access(store, "ns", None)
        await probe_access(store, "ns", lambda: create_bucket(missing))
        await probe_guarantees(store, "ns", Random(1))
        await create_bucket(missing)  # Another broker may have created it at the same time.
        await probe_access(store, "ns", None)
        await store.close()

    asyncio.run(scenario())


def test_bucket_is_created_in_its_region(moto_bucket, namespace):
    in_other_region = replace(moto_bucket, name=f"created-{namespace}", region="eu-west-1")

    async def scenario():
        await create_bucket(in_other_region)
        store = S3ObjectStore(in_other_region)
        await probe_access(store, "ns", None)
        await store.close()

    asyncio.run(scenario())


def test_failed_bucket_creation_gives_the_reason():
    async def scenario():
        async with scripted_server(response(403, "AccessDenied")) as server:
            with pytest.raises(OperatingError, match="create bucket: CreateBucket: AccessDenied"):
                await create_bucket(replace(BUCKET, endpoint=server.url))

    asyncio.run(scenario())
