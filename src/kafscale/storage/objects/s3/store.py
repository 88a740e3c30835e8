"""The object store on S3 and compatible servers.

Invariants beyond those of `objects.store`:

* Every request is sent once and has a timeout, so that each attempt is measured; `layers.retrying`
  retries.
* A create-only PUT is a single request with `If-None-Match: *`, and a replacement one with
  `If-Match`, whatever its size: S3 decides.
* Data is not copied: views refer to the client's memory.
* Errors and `repr` never contain keys or tokens.

`factory` checks at startup that the bucket honours the condition.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import obstore
from obstore.store import S3Store

from kafscale.errors import StoreUnavailableError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.s3.bucket_config import BUCKET_DEFAULT, STANDARD, S3Bucket
from kafscale.storage.objects.s3.credentials import Credentials, credentials_for
from kafscale.storage.objects.s3.errors import CLIENT_ERRORS, RangeBeyondEndError, translate
from kafscale.storage.objects.store import PAGE_KEYS, ObjectInfo, check_key, check_prefix, is_key

if TYPE_CHECKING:
    from obstore import UpdateVersion
    from obstore.store import S3Config

_CONTENT_TYPE: Final = "application/octet-stream"

_THROUGHPUT_MIN: Final = 1024 * 1024
"""Bytes per second below which a transfer counts as stuck; extends the timeout of large objects."""

_CLIENT_TIMEOUT: Final = timedelta(hours=1)
"""Longer than all our timeouts: the client has one fixed timeout, ours depend on the size."""

_SETTLE_S: Final = 0.1
"""How long the client's threads get at the end to release Python objects."""

_Result = TypeVar("_Result")


class S3ObjectStore:
    """All objects of one bucket."""

    __slots__ = ("_attributes", "_bucket", "_credentials", "_is_archived", "_store")

    def __init__(
        self, bucket: S3Bucket, *, is_archived: Callable[[str], bool] = lambda _key: True
    ) -> None:
        """`is_archived` selects the keys that get the bucket's storage class."""
        self._bucket = bucket
        self._credentials = credentials_for(bucket)
        self._store = _connect(bucket, self._credentials)
        self._is_archived = is_archived
        self._attributes: dict[str, str] = {"Content-Type": _CONTENT_TYPE}

    async def authenticate(self) -> None:
        """Get credentials before the first request, for a complete error message."""
        await self._credentials.refresh()

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        await self._put(key, parts, "create" if create else "overwrite")

    async def replace(self, key: str, parts: Sequence[Buffer], etag: str) -> None:
        await self._put(key, parts, {"e_tag": etag})

    async def _put(
        self,
        key: str,
        parts: Sequence[Buffer],
        mode: 'Literal["create", "overwrite"] | UpdateVersion',
    ) -> None:
        check_key(key)
        size_bytes = sum(map(len, parts))
        assert size_bytes > 0, "an object has at least one byte"
        await self._call(
            "put",
            key,
            size_bytes,
            lambda: obstore.put_async(
                self._store,
                key,
                parts,
                attributes=self._attributes_of(key),
                mode=mode,
                use_multipart=mode == "overwrite" and size_bytes > self._bucket.part_bytes,
                chunk_size=self._bucket.part_bytes,
                max_concurrency=self._bucket.concurrency,
            ),
        )

    async def get(self, key: str) -> memoryview:
        check_key(key)
        response = await self._call("get", key, 0, lambda: obstore.get_async(self._store, key))
        return memoryview(await self._call("get", key, response.meta["size"], response.bytes_async))

    async def get_range(self, key: str, start: int, stop: int) -> memoryview:
        assert 0 <= start < stop
        check_key(key)
        try:
            return memoryview(
                await self._call(
                    "get",
                    key,
                    stop - start,
                    lambda: obstore.get_range_async(self._store, key, start=start, end=stop),
                )
            )
        except RangeBeyondEndError:
            return memoryview(b"")

    async def get_suffix(self, key: str, length: int) -> memoryview:
        assert length > 0
        check_key(key)
        response = await self._call(
            "get",
            key,
            0,
            lambda: obstore.get_async(self._store, key, options={"range": {"suffix": length}}),
        )
        return memoryview(await self._call("get", key, length, response.bytes_async))

    async def head(self, key: str) -> ObjectInfo:
        check_key(key)
        return _info(await self._call("head", key, 0, lambda: obstore.head_async(self._store, key)))

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        check_prefix(prefix)
        stream = obstore.list(self._store, prefix, chunk_size=PAGE_KEYS)
        while True:
            try:
                chunk = await self._call("list", prefix, 0, stream.__anext__)
            except StopAsyncIteration:
                return
            yield [_info(meta) for meta in chunk if is_key(meta["path"])]

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        for first in range(0, len(keys), PAGE_KEYS):
            batch = keys[first : first + PAGE_KEYS]
            request = partial(obstore.delete_async, self._store, batch)
            await self._call("delete", batch[0], 0, request)

    async def close(self) -> None:
        """Wait until the client's threads are idle.

        The client has nothing to close, but a client thread that returns a response while Python
        shuts down aborts the process.
        """
        await self._credentials.close()
        await asyncio.sleep(_SETTLE_S)

    def _attributes_of(self, key: str) -> dict[str, str]:
        # Omit the default class, because some servers do not know it.
        if self._bucket.storage_class == STANDARD or not self._is_archived(key):
            return self._attributes
        return {**self._attributes, "Storage-Class": self._bucket.storage_class}

    async def _call(
        self, verb: str, key: str, size_bytes: int, request: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """Send one request with a timeout, and translate its errors."""
        limit_s = self._bucket.request_timeout_ms / 1000 + size_bytes / _THROUGHPUT_MIN
        try:
            async with asyncio.timeout(limit_s):
                return await request()
        except TimeoutError:
            raise StoreUnavailableError(
                f"{verb} {key}: no response within {limit_s:.1f} s"
            ) from None
        except CLIENT_ERRORS as error:
            # Not chained: the client's text may contain parts of the signed request.
            raise translate(verb, key, error) from None


def _connect(bucket: S3Bucket, credentials: Credentials) -> S3Store:
    options: S3Config = {
        "region": bucket.region,
        "virtual_hosted_style_request": not bucket.uses_path_style,
        "unsigned_payload": not bucket.signed_payload,
    }
    if bucket.endpoint:
        # With this name the setting takes precedence over the environment.
        options["aws_endpoint_url_s3"] = _address(bucket)
    if bucket.kms_key_arn:
        options["server_side_encryption"] = "aws:kms"
        options["sse_kms_key_id"] = bucket.kms_key_arn
        # Otherwise every object would cause a request to KMS, at extra cost.
        options["sse_bucket_key_enabled"] = True
    elif bucket.server_side_encryption != BUCKET_DEFAULT:
        options["server_side_encryption"] = bucket.server_side_encryption
    return S3Store(
        bucket.short_name,
        config=options,
        client_options={
            "allow_http": bucket.endpoint.startswith("http://"),
            "connect_timeout": timedelta(milliseconds=bucket.connect_timeout_ms),
            "timeout": _CLIENT_TIMEOUT,
            "pool_max_idle_per_host": str(bucket.idle_connections_max),
            "pool_idle_timeout": timedelta(milliseconds=bucket.idle_timeout_ms),
        },
        retry_config={"max_retries": 0},
        credential_provider=credentials,
    )


def _address(bucket: S3Bucket) -> str:
    """The endpoint, with the bucket in the host name unless the path contains it."""
    endpoint = bucket.endpoint.rstrip("/")
    if bucket.uses_path_style:
        return endpoint
    scheme, _, host = endpoint.partition("://")
    return f"{scheme}://{bucket.short_name}.{host}"


def _info(meta: Any) -> ObjectInfo:
    return ObjectInfo(
        key=meta["path"],
        size_bytes=meta["size"],
        modified_ms=int(meta["last_modified"].timestamp() * 1000),
        etag=meta["e_tag"] or "",
    )
