"""Reads from a replica that may lag or be unavailable."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import ObjectNotFoundError
from kafscale.storage.objects.layers.replica import (
    CHECK_S,
    DOUBT_S,
    KEYS_MAX,
    PAUSE_S_MAX,
    PAUSE_S_MIN,
    ReplicaReadingObjectStore,
)
from kafscale.storage.objects.memory import MemoryObjectStore


class Scene:
    def __init__(self) -> None:
        self.now = 0.0
        self.main = MemoryObjectStore()
        self.copy = MemoryObjectStore()
        self.network = FaultyObjectStore(self.copy, random=Random(1))
        self.store = ReplicaReadingObjectStore(
            self.main, self.network, lambda key: not key.endswith(".index"), lambda: self.now
        )

    async def read(self, key: str) -> bytes:
        return bytes(await self.store.get_range(key, 0, 100))


def test_segments_are_read_from_the_replica():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        await scene.copy.put("ns/a", [b"copy"])
        assert await scene.read("ns/a") == b"copy"

    asyncio.run(scenario())


def test_only_ranges_of_segments_are_read_from_the_replica():
    scene = Scene()

    async def scenario():
        for key in ("ns/a", "ns/a.index"):
            await scene.main.put(key, [b"main"])
            await scene.copy.put(key, [b"copy"])
        assert await scene.store.get("ns/a") == b"main"
        assert await scene.store.get_suffix("ns/a", 100) == b"main"
        assert await scene.read("ns/a.index") == b"main"
        assert await scene.read("ns/a") == b"copy"

    asyncio.run(scenario())


def test_object_of_another_size_is_read_from_the_main_store():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        await scene.copy.put("ns/a", [b"copy"])
        assert await scene.read("ns/a") == b"copy"
        await scene.store.put("ns/a", [b"merged"], create=False)
        assert await scene.read("ns/a") == b"merged"
        await scene.copy.put("ns/a", [b"synced"], create=False)
        assert await scene.read("ns/a") == b"synced"
        await scene.main.put("ns/a", [b"replaced by another broker"], create=False)
        scene.now += CHECK_S
        assert await scene.read("ns/a") == b"replaced by another broker"

    asyncio.run(scenario())


def test_doubted_object_is_read_from_the_main_store_for_some_time():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        await scene.copy.put("ns/a", [b"copy"])
        await scene.store.head("ns/a")
        assert await scene.read("ns/a") == b"main"
        scene.now += DOUBT_S
        assert await scene.read("ns/a") == b"copy"
        for number in range(KEYS_MAX + 1):
            await scene.main.put(f"ns/{number}", [b"main"])
            await scene.store.head(f"ns/{number}")
        assert len(scene.store._doubted_until) == KEYS_MAX

    asyncio.run(scenario())


def test_objects_missing_in_the_replica_are_read_from_the_main_store():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"main"])
        assert await scene.read("ns/a") == b"main"
        with pytest.raises(ObjectNotFoundError):
            await scene.read("ns/missing")

    asyncio.run(scenario())


def test_unavailable_replica_is_bypassed():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"main"])
        scene.network.is_down = True
        assert await scene.read("ns/a") == b"main"
        await scene.store.close()

    asyncio.run(scenario())


async def count_replica_reads(scene: Scene, times: int) -> int:
    """How many of `times` reads were tried on the replica."""
    before = scene.network.injected.total()
    for _ in range(times):
        assert await scene.read("ns/a") == b"main"
    return scene.network.injected.total() - before


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.SLOW_DOWN, Fault.DENIED])
def test_failed_replica_is_paused_and_then_probed_by_one_reader(fault):
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"main"])
        scene.network.rules.append(Rule(fault=fault))
        assert await count_replica_reads(scene, 100) == 1
        rest_s = PAUSE_S_MIN
        for _ in range(10):
            scene.now += rest_s - 0.1
            assert await count_replica_reads(scene, 10) == 0
            scene.now += 0.1
            assert await count_replica_reads(scene, 10) == 1
            rest_s = min(2 * rest_s, PAUSE_S_MAX)
        assert rest_s == PAUSE_S_MAX

    asyncio.run(scenario())


def test_recovered_replica_is_used_at_once():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        await scene.copy.put("ns/a", [b"copy"])
        for _ in range(3):
            scene.network.is_down = True
            assert await scene.read("ns/a") == b"main"
            scene.network.is_down = False
            assert await scene.read("ns/a") == b"main"
            scene.now += PAUSE_S_MIN
            assert await scene.read("ns/a") == b"copy"

    asyncio.run(scenario())


def test_missing_object_does_not_mark_the_replica_as_failed():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        scene.network.is_down = True
        await scene.read("ns/a")
        scene.network.is_down = False
        scene.now += PAUSE_S_MIN
        assert await scene.read("ns/a") == b"main"
        await scene.copy.put("ns/a", [b"copy"])
        assert await scene.read("ns/a") == b"copy"

    asyncio.run(scenario())


def test_concurrent_failures_count_once():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        await scene.copy.put("ns/a", [b"copy"])
        slow = Rule(fault=Fault.TIMED_OUT, seconds=(0.01, 0.01))
        scene.network.rules.append(slow)
        result = await asyncio.gather(*(scene.read("ns/a") for _ in range(20)))
        assert result == [b"main"] * 20
        scene.network.rules.clear()
        scene.now += PAUSE_S_MIN
        assert await scene.read("ns/a") == b"copy"

    asyncio.run(scenario())


def test_other_readers_do_not_wait_for_a_probe():
    scene = Scene()

    async def scenario():
        await scene.main.put("ns/a", [b"main"])
        scene.network.is_down = True
        await scene.read("ns/a")
        scene.network.is_down = False
        scene.network.rules.append(Rule(fault=Fault.SLOW, seconds=(60, 60)))
        scene.now += PAUSE_S_MIN
        trying = asyncio.ensure_future(scene.read("ns/a"))
        await asyncio.sleep(0)
        assert await scene.read("ns/a") == b"main"
        assert not trying.done()
        trying.cancel()
        await asyncio.wait([trying])

    asyncio.run(scenario())


def test_main_store_decides_what_exists():
    scene = Scene()

    async def scenario():
        await scene.copy.put("ns/stale", [b"copy"])
        await scene.store.put("ns/a", [b"main"])
        result = [info.key async for chunk in scene.store.list("ns/") for info in chunk]
        assert result == ["ns/a"]
        with pytest.raises(ObjectNotFoundError):
            await scene.store.head("ns/stale")
        await scene.store.delete(["ns/a"])
        with pytest.raises(ObjectNotFoundError):
            await scene.main.head("ns/a")

    asyncio.run(scenario())
