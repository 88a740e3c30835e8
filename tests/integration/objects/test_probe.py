"""A bucket is proven before it is used: what is wrong with it, and what to do about it."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from kafscale.errors import ConfigError, OperatingError
from kafscale.storage.objects import (
    S3Bucket,
    S3ObjectStore,
    create_bucket,
    probe_access,
    probe_create_only,
)
from services.s3_server import ACCESS_KEY, SECRET_KEY
from services.scripted_server import response, scripted_server

pytestmark = pytest.mark.timeout(600)  # The first to come builds the S3 server.

BUCKET = S3Bucket(name="bucket", path_style=True, access_key=ACCESS_KEY, secret_key=SECRET_KEY)


class CarelessServer:
    """Keeps what it is given, and has never heard of conditions."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def __call__(self, head: str, body: bytes) -> bytes:
        method, path, _ = head.split(" ", 2)
        if method == "PUT":
            self.objects[path] = body
            return self._answer(b"")
        return self._answer(self.objects.get(path, b"<DeleteResult></DeleteResult>"))

    def _answer(self, body: bytes) -> bytes:
        head = (
            'HTTP/1.1 200 OK\r\nETag: "x"\r\nLast-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n'
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def test_a_server_that_ignores_if_none_match_is_refused():
    async def scenario():
        async with scripted_server(CarelessServer()) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url))
            with pytest.raises(ConfigError, match="use a server version with conditional writes"):
                await probe_create_only(store, "ns", Random(1))
            assert "if-none-match: *" in server.requests[0].lower()
            await store.close()

    asyncio.run(scenario())


def test_a_server_that_refuses_if_none_match_is_refused():
    async def scenario():
        async with scripted_server(response(501, "NotImplemented")) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url))
            with pytest.raises(OperatingError, match="lacks a feature that Kafscale needs"):
                await probe_create_only(store, "ns", Random(1))
            await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (response(404, "NoSuchBucket"), "create the bucket or set s3.createBucket"),
        (response(301, "PermanentRedirect"), "set s3.region"),
        (response(400, "AuthorizationHeaderMalformed"), "set s3.region"),
        (response(403, "AccessDenied"), "s3:ListBucket"),
        (response(403, "InvalidAccessKeyId"), "check the credentials"),
        (response(403, "RequestTimeTooSkewed"), "set the clock"),
    ],
)
def test_a_bucket_that_cannot_be_used_says_what_to_do(answer, advice):
    async def scenario():
        async with scripted_server(answer) as server:
            store = S3ObjectStore(replace(BUCKET, endpoint=server.url))
            with pytest.raises(OperatingError, match=advice):
                await probe_access(store, "ns", None)
            await store.close()

    asyncio.run(scenario())


@pytest.fixture(params=["moto", "s3"])
def bucket(request) -> S3Bucket:
    found: S3Bucket = request.getfixturevalue(
        f"{'moto' if request.param == 'moto' else 'real'}_bucket"
    )
    return found


def test_a_bucket_that_is_missing_is_made_only_when_asked(bucket, namespace):
    missing = replace(bucket, name=f"made-{namespace}")

    async def scenario():
        store = S3ObjectStore(missing)
        with pytest.raises(OperatingError, match="NoSuchBucket"):
            await probe_access(store, "ns", None)
        await probe_access(store, "ns", lambda: create_bucket(missing))
        await probe_create_only(store, "ns", Random(1))
        await create_bucket(missing)  # Another broker was as fast.
        await probe_access(store, "ns", None)
        await store.close()

    asyncio.run(scenario())


def test_a_bucket_is_made_in_its_region(moto_bucket, namespace):
    elsewhere = replace(moto_bucket, name=f"made-{namespace}", region="eu-west-1")

    async def scenario():
        await create_bucket(elsewhere)
        store = S3ObjectStore(elsewhere)
        await probe_access(store, "ns", None)
        await store.close()

    asyncio.run(scenario())


def test_a_bucket_that_cannot_be_made_says_why():
    async def scenario():
        async with scripted_server(response(403, "AccessDenied")) as server:
            with pytest.raises(OperatingError, match="create bucket: CreateBucket: AccessDenied"):
                await create_bucket(replace(BUCKET, endpoint=server.url))

    asyncio.run(scenario())
