"""Startup checks: the object store is reachable, and honours create-only PUTs.

Fencing depends on create-only PUTs: on a store that ignores the condition, two brokers could
acknowledge records into the same log. The broker refuses to start with such a store.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random

from kafscale.errors import ConfigError, ObjectExistsError, OperatingError
from kafscale.storage.objects.s3.errors import MissingBucketError
from kafscale.storage.objects.store import ObjectStore


async def probe_access(
    store: ObjectStore, namespace: str, create: Callable[[], Awaitable[None]] | None
) -> None:
    """List the namespace, which requires the bucket, its region and permissions.

    If the bucket does not exist and `create` is given, it is created.
    """
    try:
        await _list(store, namespace)
    except MissingBucketError:
        if create is None:
            raise
        await create()
        await _list(store, namespace)


async def probe_create_only(store: ObjectStore, namespace: str, random: Random) -> None:
    """Write one key twice; the second PUT must fail and change nothing."""
    key = f"{namespace}/_probe/{random.getrandbits(64):016x}"
    await store.put(key, [b"first"])
    try:
        await store.put(key, [b"second"])
    except ObjectExistsError:
        is_honoured = bytes(await store.get(key)) == b"first"
    else:
        is_honoured = False
    try:
        await store.delete([key])
    except OperatingError:
        if is_honoured:  # Otherwise the violation is the more important error.
            raise
    if not is_honoured:
        raise ConfigError(
            "the object store ignores If-None-Match on PUT and overwrites existing objects, so two"
            " brokers could overwrite each other's records; use a server version with conditional"
            " writes, or another store, such as S3"
        )


async def _list(store: ObjectStore, namespace: str) -> None:
    async with aclosing(store.list(f"{namespace}/")) as chunks:  # type: ignore[type-var]
        async for _ in chunks:
            return
