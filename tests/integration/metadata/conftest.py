"""Every metadata store behind the same fixture.

In-process stores run in virtual time. etcd is a real one in real time; its leases end late by the
interval of its checks.
"""

import asyncio
from collections.abc import Iterator

import pytest

from kafscale.metadata.store.base import DeletePrefix
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.store.memory import MemoryStore
from kafscale.metadata.store.sqlite.store import SqliteStore
from kafscale.testing import virtual_time
from services.etcd_server import EtcdCluster, EtcdServer


class Simulated:
    """Plays a body with a store of this process."""

    late_s = 0.01
    """By how much a lease may end too late."""

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
        """These stores forget by themselves, as soon as their `commits_max` is passed."""


class Real:
    """Plays a body with an etcd that holds nothing; its revisions are what they are."""

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
def play(request, tmp_path):
    """Runs the body of a test, an async function of a new store."""

    async def in_memory(**options):
        return MemoryStore(virtual_time.clock_ms, **options)

    async def on_disk(**options):
        return await SqliteStore.open(tmp_path / "metadata.db", virtual_time.clock_ms, **options)

    match request.param:
        case "memory":
            return Simulated(in_memory)
        case "sqlite":
            return Simulated(on_disk)
        case _:
            return Real(request.getfixturevalue("etcd"))


@pytest.fixture(scope="session")
def three_members(tmp_path_factory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(three_members) -> EtcdCluster:
    """Three members in good health that know nothing, for a test that loses some."""
    three_members.repair()
    three_members.control("del", "/", "--prefix")
    return three_members
