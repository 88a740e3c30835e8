"""What only an S3 store has: requests and their answers, credentials, the environment."""

import asyncio
import traceback
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import obstore
import pytest

from kafscale.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.storage.objects import S3Bucket, S3ObjectStore
from services.process import free_port
from services.s3_server import ACCESS_KEY, SECRET_KEY

pytestmark = pytest.mark.timeout(60)

BUCKET = S3Bucket(
    name="bucket", path_style=True, access_key=ACCESS_KEY, secret_key=SECRET_KEY,
    request_timeout_ms=5000,
)  # fmt: skip


@asynccontextmanager
async def scripted(answer: str | None) -> AsyncIterator[tuple[S3ObjectStore, list[str]]]:
    """A server that gives one answer to everything (or none ever), and the requests it got."""
    requests: list[str] = []
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                requests.append(head.decode())
                length = [
                    int(line[15:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ]
                await reader.readexactly(sum(length))
                if answer is not None:
                    writer.write(answer.encode())
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    store = S3ObjectStore(
        replace(BUCKET, endpoint=f"http://127.0.0.1:{port}", request_timeout_ms=300)
    )
    try:
        yield store, requests
    finally:
        server.close()
        for connection in connections:
            connection.close()
        await store.close()


def response(status: int, code: str = "") -> str:
    body = f"<Error><Code>{code}</Code><Message>because</Message></Error>" if code else ""
    return f"HTTP/1.1 {status} Reason\r\nContent-Length: {len(body)}\r\n\r\n{body}"


@pytest.mark.parametrize(
    ("answer", "expected"),
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
        (response(404, "NoSuchBucket"), OperatingError),
        (response(501, "NotImplemented"), OperatingError),
        (None, StoreUnavailableError),
    ],
)
def test_a_put_that_fails_says_whether_to_try_again_and_is_sent_once(answer, expected):
    async def scenario():
        async with scripted(answer) as (store, requests):
            with pytest.raises(OperatingError) as failure:
                await store.put("ns/key", [b"body"])
            assert type(failure.value) is expected
            assert "ns/key" in str(failure.value)
            assert len(requests) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (response(503, "SlowDown"), StoreUnavailableError),
        (response(404, "NoSuchKey"), ObjectNotFoundError),
        (response(404, "NoSuchBucket"), OperatingError),
        (response(403, "AccessDenied"), OperatingError),
        (None, StoreUnavailableError),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntoo short", StoreUnavailableError),
    ],
)
def test_a_read_that_fails_says_whether_to_try_again(answer, expected):
    async def scenario():
        async with scripted(answer) as (store, _):
            with pytest.raises(OperatingError) as failure:
                await store.get("ns/key")
            assert type(failure.value) is expected

    asyncio.run(scenario())


def test_a_create_only_put_is_one_conditional_request_however_large():
    async def scenario():
        async with scripted(response(200)) as (store, requests):
            with pytest.raises(OperatingError):  # The scripted answer lacks an ETag.
                await store.put("ns/key", [bytes(11_000_000)])
            (request,) = requests
            assert request.startswith("PUT /bucket/ns/key HTTP/1.1\r\n")
            assert "if-none-match: *\r\n" in request.lower()
            assert "content-type: application/octet-stream\r\n" in request.lower()

    asyncio.run(scenario())


def test_nobody_listening_is_unavailable():
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
def test_wrong_keys_are_refused_and_not_repeated(real_bucket):
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
def test_a_bucket_that_is_not_there_is_no_missing_object(real_bucket):
    store = S3ObjectStore(replace(real_bucket, name="no-such-bucket"))

    async def scenario():
        for call in (store.put("ns/key", [b"x"]), store.get("ns/key"), anext(store.list("ns/"))):
            with pytest.raises(OperatingError, match="NoSuchBucket") as failure:
                await call
            assert type(failure.value) is OperatingError

    asyncio.run(scenario())


def test_the_settings_win_over_the_environment(moto_bucket, monkeypatch, namespace):
    for variable in ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of other keys")
    store = S3ObjectStore(moto_bucket)

    async def scenario():
        await store.put(f"{namespace}/a", [b"x"])
        assert await store.get(f"{namespace}/a") == b"x"

    asyncio.run(scenario())


def test_a_bucket_may_be_named_by_its_arn(moto_bucket, namespace):
    by_name = S3ObjectStore(moto_bucket)
    by_arn = S3ObjectStore(replace(moto_bucket, name=f"arn:aws:s3:::{moto_bucket.name}"))

    async def scenario():
        await by_arn.put(f"{namespace}/a", [b"x"])
        assert await by_name.get(f"{namespace}/a") == b"x"

    asyncio.run(scenario())


@pytest.mark.parametrize("create", [True, False])
def test_objects_are_typed_and_encrypted_as_set(moto_bucket, namespace, create):
    key_arn = "arn:aws:kms:us-east-1:123456789012:key/some-key"
    bucket = replace(moto_bucket, kms_key_arn=key_arn, storage_class="STANDARD_IA")
    store = S3ObjectStore(bucket)

    async def scenario():
        await store.put(f"{namespace}/a", [bytes(6_000_000)], create=create)

    asyncio.run(scenario())
    url = obstore.sign(store._store, "GET", f"{namespace}/a", timedelta(minutes=1))
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - to our own server.
        headers = answer.headers
    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-amz-server-side-encryption"] == "aws:kms"
    assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == key_arn
    assert headers["x-amz-storage-class"] == "STANDARD_IA"
