"""Every metadata store behind the same fixture.

In-process stores run in virtual time. etcd runs in real time; its leases expire late by its check
interval.
"""

import asyncio
from collections.abc import Iterator

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.metadata.store.base import DeletePrefix
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.store.sqlite.store import SqliteStore
from services.etcd_server import EtcdCluster, EtcdServer


class VirtualTimeRunner:
    """Runs a test body with an in-process store in virtual time."""

    late_s = 0.01
    """By how much a lease may expire late."""

    def __init__(self, make):
        self._make = make

    def __call__(self, body, **options):
        async def scenario(_random):
            store = await self._make(**options)
            try:
                return await body(store)
            finally:
                await store.close()

        return virtual_time.run(scenario, seed=0)

    def forget(self, _revision):
        """These stores drop old commits as soon as there are more than `commits_max`."""


class EtcdRunner:
    """Runs a test body with an empty etcd; its revisions continue from earlier tests."""

    late_s = 5

    def __init__(self, server):
        self._server = server

    def __call__(self, body, **_options):
        async def scenario():
            store = EtcdStore(self._server.settings())
            try:
                await store.commit([], [DeletePrefix("/")])
                return await body(store)
            finally:
                await store.close()

        return asyncio.run(scenario())

    def forget(self, revision):
        self._server.compact(revision)


@pytest.fixture(scope="session")
def etcd(tmp_path_factory) -> Iterator[EtcdServer]:
    """A shared etcd, emptied before each use."""
    with EtcdServer(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "etcd"])
def run_with_store(request, tmp_path):
    """Runs a test body, an async function that takes a new store."""

    async def in_memory(**options):
        return MemoryStore(virtual_time.clock_ms, **options)

    async def on_disk(**options):
        return await SqliteStore.open(tmp_path / "metadata.db", virtual_time.clock_ms, **options)

    match request.param:
        case "memory":
            return VirtualTimeRunner(in_memory)
        case "sqlite":
            return VirtualTimeRunner(on_disk)
        case _:
            return EtcdRunner(request.getfixturevalue("etcd"))


@pytest.fixture(scope="session")
def three_members(tmp_path_factory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(three_members) -> EtcdCluster:
    """Three healthy members without data, for tests in which members fail."""
    three_members.repair()
    three_members.control("del", "/", "--prefix")
    return three_members
