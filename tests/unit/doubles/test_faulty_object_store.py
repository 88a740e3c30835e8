"""Fault injection: effects, rules and repeatability."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import (
    KafscaleError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.storage.objects.memory import MemoryObjectStore

PUT = frozenset({"put"})


class Scene:
    """A faulty store over a memory store, with a fake clock."""

    def __init__(self, *rules: Rule, seed: int = 1) -> None:
        self.waited: list[float] = []
        self.memory = MemoryObjectStore()
        self.store = FaultyObjectStore(self.memory, rules, random=Random(seed), sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    async def exists(self, key: str) -> bool:
        try:
            await self.memory.head(key)
        except ObjectNotFoundError:
            return False
        return True


@pytest.mark.parametrize(
    ("fault", "has_effect"),
    [
        (Fault.REFUSED, False),
        (Fault.SLOW_DOWN, False),
        (Fault.TIMED_OUT, False),
        (Fault.RESPONSE_LOST, True),
    ],
)
def test_each_fault_has_its_documented_effect(fault, has_effect):
    scene = Scene(Rule(fault=fault, operations=PUT))

    async def scenario():
        with pytest.raises(StoreUnavailableError, match=fault.name.lower()):
            await scene.store.put("ns/a", [b"x"])
        assert await scene.exists("ns/a") is has_effect

    asyncio.run(scenario())


def test_late_request_takes_effect_after_its_failure():
    scene = Scene(Rule(fault=Fault.APPLIED_LATER, seconds=(5, 5)))

    async def scenario():
        with pytest.raises(StoreUnavailableError):
            await scene.store.put("ns/a", [b"x"])
        assert not await scene.exists("ns/a")
        await scene.store.wait_for_late_writes()
        assert await scene.exists("ns/a")
        assert scene.waited == [5]

    asyncio.run(scenario())


def test_close_waits_for_late_requests():
    scene = Scene(Rule(fault=Fault.APPLIED_LATER))

    async def scenario():
        with pytest.raises(StoreUnavailableError):
            await scene.store.put("ns/a", [b"x"])
        await scene.store.close()
        assert await scene.exists("ns/a")

    asyncio.run(scenario())


def test_denial_is_not_retryable():
    scene = Scene(Rule(fault=Fault.DENIED))
    with pytest.raises(OperatingError) as failure:
        asyncio.run(scene.store.get("ns/a"))
    assert not isinstance(failure.value, StoreUnavailableError)


def test_latency_is_within_its_limits_and_changes_nothing_else():
    scene = Scene(Rule(fault=Fault.SLOW, seconds=(0.05, 0.1)))

    async def scenario():
        for number in range(50):
            await scene.store.put(f"ns/{number}", [b"x"])
        assert len([info async for chunk in scene.store.list("ns/") for info in chunk]) == 50

    asyncio.run(scenario())
    assert all(0.05 <= seconds <= 0.1 for seconds in scene.waited)
    assert len({*scene.waited}) > 40


def test_rules_match_operations_and_keys():
    scene = Scene(Rule(fault=Fault.REFUSED, operations=PUT, keys="ns/_wal/*"))

    async def scenario():
        await scene.store.put("ns/topic/a", [b"x"])
        with pytest.raises(StoreUnavailableError):
            await scene.store.put("ns/_wal/0/a", [b"x"])
        with pytest.raises(ObjectNotFoundError):
            await scene.store.get("ns/_wal/0/a")

    asyncio.run(scenario())
    assert scene.store.injected == {Fault.REFUSED: 1}


def test_rule_fires_a_limited_number_of_times():
    scene = Scene(Rule(fault=Fault.REFUSED, times_max=2))

    async def scenario():
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await scene.store.put("ns/a", [b"x"])
        await scene.store.put("ns/a", [b"x"])

    asyncio.run(scenario())


def outcomes(seed: int) -> list[bool]:
    scene = Scene(Rule(fault=Fault.REFUSED, share=0.3), seed=seed)

    async def attempt(number: int) -> bool:
        try:
            await scene.store.put(f"ns/{number}", [b"x"])
        except StoreUnavailableError:
            return False
        return True

    async def scenario() -> list[bool]:
        return [await attempt(number) for number in range(200)]

    return asyncio.run(scenario())


def test_faults_depend_on_the_seed():
    assert outcomes(7) == outcomes(7)
    assert outcomes(7) != outcomes(8)
    assert 100 < sum(outcomes(7)) < 180


def test_outage_fails_all_requests_until_it_ends():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"1234"])
        scene.store.is_down = True
        for call in (
            scene.store.put("ns/b", [b"x"]),
            scene.store.get("ns/a"),
            scene.store.get_range("ns/a", 0, 1),
            scene.store.get_suffix("ns/a", 1),
            scene.store.head("ns/a"),
            scene.store.delete(["ns/a"]),
            anext(scene.store.list("ns/")),
        ):
            with pytest.raises(KafscaleError, match="down"):
                await call
        scene.store.is_down = False
        assert await scene.store.get_suffix("ns/a", 2) == b"34"
        assert await scene.store.get_range("ns/a", 0, 2) == b"12"
        assert not await scene.exists("ns/b")

    asyncio.run(scenario())


def test_suspended_process_sends_what_it_had_begun_when_it_continues():
    async def scenario() -> None:
        scene = Scene()
        scene.store.resumed = asyncio.Event()
        put = asyncio.create_task(scene.store.put("key", [b"x"]))
        await asyncio.sleep(0)
        assert not await scene.exists("key")
        scene.store.resumed.set()
        scene.store.resumed = None
        await put
        assert await scene.exists("key")

    asyncio.run(scenario())


def test_lagging_listing_misses_young_objects():
    async def scenario() -> None:
        now_ms = 1000
        memory = MemoryObjectStore(lambda: now_ms)
        store = FaultyObjectStore(memory, random=Random(1), clock=lambda: now_ms)
        await store.put("a/old", [b"x"])
        now_ms = 1500
        await store.put("a/young", [b"x"])
        store.list_lag_ms = 100
        assert [item.key async for chunk in store.list("a/") for item in chunk] == ["a/old"]
        now_ms = 1600
        listed = [item.key async for chunk in store.list("a/") for item in chunk]
        assert listed == ["a/old", "a/young"]

    asyncio.run(scenario())
