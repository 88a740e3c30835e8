"""A bucket with a read replica that is behind or unreachable."""

import asyncio
import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kafscale.errors import ObjectNotFoundError
from kafscale.storage.objects.layers.replica import ReplicaReadingObjectStore
from kafscale.storage.objects.s3.bucket_admin import create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from services.process import free_port

pytestmark = pytest.mark.timeout(600)  # The first run builds the S3 server.

TIMEOUT_MS = 500


@pytest.fixture
def replica(real_bucket, namespace) -> S3Bucket:
    result = replace(real_bucket, name=f"replica-{namespace}")
    asyncio.run(create_bucket(result))
    return result


def test_objects_missing_in_the_replica_are_read_from_the_bucket(real_bucket, replica, namespace):
    async def scenario():
        main, behind = S3ObjectStore(real_bucket), S3ObjectStore(replica)
        store = ReplicaReadingObjectStore(main, behind, lambda _key: True)
        await behind.put(f"{namespace}/old", [b"from the copy"])
        await main.put(f"{namespace}/old", [b"from the main"])
        await behind.put(f"{namespace}/replaced", [b"before"])
        await main.put(f"{namespace}/replaced", [b"from the main"])
        await store.put(f"{namespace}/new", [b"from the main"])
        copied = {"old": b"from the copy", "new": b"from the main", "replaced": b"from the main"}
        for name, expected in copied.items():
            key = f"{namespace}/{name}"
            assert await store.get(key) == b"from the main"
            assert await store.get_range(key, 5, 100) == expected[5:]
            assert await store.get_suffix(key, 4) == b"main"
        listed = [info.key async for page in store.list(f"{namespace}/") for info in page]
        assert listed == [f"{namespace}/{name}" for name in ("new", "old", "replaced")]
        with pytest.raises(ObjectNotFoundError):
            await store.get(f"{namespace}/missing")
        await store.close()

    asyncio.run(scenario())


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield int(server.getsockname()[1])


@pytest.mark.parametrize("way", ["refused", "silent", "no bucket"])
def test_unreachable_replica_delays_the_first_reads_only(real_bucket, silent_port, namespace, way):
    ports = {"refused": free_port(), "silent": silent_port}
    unreachable = replace(real_bucket, name="no-such-bucket", request_timeout_ms=TIMEOUT_MS)
    if way in ports:
        unreachable = replace(unreachable, endpoint=f"http://127.0.0.1:{ports[way]}")

    async def scenario():
        main = S3ObjectStore(real_bucket)
        store = ReplicaReadingObjectStore(main, S3ObjectStore(unreachable), lambda _key: True)
        await store.put(f"{namespace}/a", [b"x"])
        began = time.monotonic()
        for _ in range(20):
            assert await store.get_range(f"{namespace}/a", 0, 1) == b"x"
        assert time.monotonic() - began < 3 * TIMEOUT_MS / 1000
        await store.close()

    asyncio.run(scenario())
