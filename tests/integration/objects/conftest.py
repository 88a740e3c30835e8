"""Every object store behind the same fixture."""

import asyncio
import time
from collections.abc import Callable, Iterator
from functools import partial
from uuid import uuid4

import pytest

from kafscale.storage.objects.local.store import LocalObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectStore
from services import s3_server
from services.selection import long_except


@pytest.fixture(scope="session")
def moto_bucket(tmp_path_factory) -> Iterator[S3Bucket]:
    with s3_server.moto_server(tmp_path_factory.mktemp("moto")) as bucket:
        yield bucket


@pytest.fixture(scope="session")
def real_bucket(tmp_path_factory) -> Iterator[S3Bucket]:
    if not s3_server.is_available():
        pytest.skip("no Go here to build an S3 server")
    with s3_server.s3_server(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


STORES = ["memory", "local", "local without fsync", "moto", "s3"]


@pytest.fixture(params=long_except(STORES, lambda name: name != "moto"))
def store(request, tmp_path) -> Iterator[ObjectStore]:
    opening: dict[str, Callable[[], ObjectStore]] = {
        "memory": lambda: MemoryObjectStore(lambda: time.time_ns() // 1_000_000),
        "local": partial(LocalObjectStore, tmp_path),
        "local without fsync": partial(LocalObjectStore, tmp_path, fsync=False),
        "moto": lambda: S3ObjectStore(request.getfixturevalue("moto_bucket")),
        "s3": lambda: S3ObjectStore(request.getfixturevalue("real_bucket")),
    }
    opened = opening[request.param]()
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def contended_store(request, store) -> ObjectStore:
    """A store for concurrent requests to one key.

    Not moto: it has no lock between its check and its write, and a read during a write may get
    status 500.
    """
    if "moto" in request.node.callspec.id:
        pytest.skip("moto does not support concurrent requests to one key")
    return store


@pytest.fixture
def namespace() -> str:
    """A unique namespace of the store."""
    return f"ns-{uuid4()}"
