"""Reading from a copy that may be late, wrong about nothing, and sometimes away."""

import asyncio
from random import Random

import pytest

from kafscale.errors import ObjectNotFoundError
from kafscale.storage.objects import (
    FaultyObjectStore,
    MemoryObjectStore,
    ReplicaReadingObjectStore,
)


class Scene:
    def __init__(self) -> None:
        self.main = MemoryObjectStore()
        self.copy = MemoryObjectStore()
        self.network = FaultyObjectStore(self.copy, random=Random(1))
        self.store = ReplicaReadingObjectStore(self.main, self.network)

    async def read(self, key: str) -> list[bytes]:
        return [
            bytes(await self.store.get(key)),
            bytes(await self.store.get_range(key, 0, 100)),
            bytes(await self.store.get_suffix(key, 100)),
        ]


def test_bytes_come_from_the_copy():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        await scene.copy.put("ns/a", [b"copy"])
        assert await scene.read("ns/a") == [b"copy"] * 3

    asyncio.run(scenario())


def test_what_the_copy_has_not_got_yet_comes_from_the_main_store():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"main"])
        assert await scene.read("ns/a") == [b"main"] * 3
        with pytest.raises(ObjectNotFoundError):
            await scene.read("ns/missing")

    asyncio.run(scenario())


def test_a_copy_that_is_away_is_not_missed():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"main"])
        scene.network.is_down = True
        assert await scene.read("ns/a") == [b"main"] * 3
        await scene.store.close()

    asyncio.run(scenario())


def test_the_main_store_alone_says_what_exists():
    scene = Scene()

    async def scenario():
        await scene.copy.put("ns/stale", [b"copy"])
        await scene.store.put("ns/a", [b"main"])
        found = [info.key async for chunk in scene.store.list("ns/") for info in chunk]
        assert found == ["ns/a"]
        with pytest.raises(ObjectNotFoundError):
            await scene.store.head("ns/stale")
        await scene.store.delete(["ns/a"])
        with pytest.raises(ObjectNotFoundError):
            await scene.main.head("ns/a")

    asyncio.run(scenario())
