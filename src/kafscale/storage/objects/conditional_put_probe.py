"""The proofs, before anything relies on it, that a store is there and honours create-only PUTs.

Fencing rests on them: on a store that ignores the condition, two brokers could acknowledge records
into one log. Such a store is refused at the start, in words, and never worked around.
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
    """Ask for a listing, which needs the bucket, its region and the right to use it.

    A bucket that is not there is made by `create`, if there is one.
    """
    try:
        await _list(store, namespace)
    except MissingBucketError:
        if create is None:
            raise
        await create()
        await _list(store, namespace)


async def probe_create_only(store: ObjectStore, namespace: str, random: Random) -> None:
    """Write one key twice; the second must be told that the key is taken, and change nothing."""
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
        if is_honoured:  # Otherwise that is the worse news.
            raise
    if not is_honoured:
        raise ConfigError(
            "this object store overwrites objects that it was asked only to create: it ignores "
            "If-None-Match on PUT, without which two brokers could write over each other's records;"
            " use a version of the server that has conditional writes, or another store, such as S3"
        )


async def _list(store: ObjectStore, namespace: str) -> None:
    async with aclosing(store.list(f"{namespace}/")) as chunks:  # type: ignore[type-var]
        async for _ in chunks:
            return
