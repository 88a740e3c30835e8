"""Retries: number, pauses, and PUTs with unknown outcome."""

import asyncio
from random import Random

import pytest

from doubles.faulty_object_store import Fault, FaultyObjectStore, Rule
from kafscale.errors import (
    ObjectChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    OperatingError,
    StoreUnavailableError,
)
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import PAGE_KEYS


class Scene:
    """A patient store over a faulty one over memory, in a world where waiting takes no time."""

    def __init__(self, *rules: Rule, attempts_max: int = 3) -> None:
        self.pauses: list[float] = []
        self.memory = MemoryObjectStore()
        self.faulty = FaultyObjectStore(self.memory, rules, random=Random(1), sleep=self.sleep)
        self.store = RetryingObjectStore(
            self.faulty, attempts_max=attempts_max, random=Random(2), sleep=self.sleep
        )

    async def sleep(self, seconds: float) -> None:
        if seconds:
            self.pauses.append(seconds)


def test_transient_faults_are_hidden():
    scene = Scene(Rule(fault=Fault.SLOW_DOWN, times_max=2))

    async def scenario():
        await scene.store.put("ns/a", [b"x"])
        assert await scene.store.get("ns/a") == b"x"

    asyncio.run(scenario())
    assert scene.faulty.injected[Fault.SLOW_DOWN] == 2


@pytest.mark.parametrize("attempts_max", [1, 3])
def test_outage_is_raised_after_the_allowed_attempts(attempts_max):
    """S-07."""
    scene = Scene(Rule(fault=Fault.REFUSED), attempts_max=attempts_max)

    async def scenario():
        for call in (
            scene.store.put("ns/a", [b"x"]),
            scene.store.get("ns/a"),
            scene.store.get_range("ns/a", 0, 1),
            scene.store.get_suffix("ns/a", 1),
            scene.store.head("ns/a"),
            scene.store.delete(["ns/a"]),
            anext(scene.store.list("ns/")),
        ):
            scene.faulty.injected.clear()
            with pytest.raises(StoreUnavailableError):
                await call
            assert scene.faulty.injected[Fault.REFUSED] == attempts_max

    asyncio.run(scenario())


def test_pauses_double_up_to_ten_seconds_with_jitter():
    scene = Scene(Rule(fault=Fault.REFUSED), attempts_max=11)
    with pytest.raises(StoreUnavailableError):
        asyncio.run(scene.store.get("ns/a"))
    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]
    ratios = [pause_s / least_s for pause_s, least_s in zip(scene.pauses, expected, strict=True)]
    assert all(1 <= ratio <= 1.3 for ratio in ratios)
    assert len({round(ratio, 3) for ratio in ratios}) > 5


def test_responses_and_permanent_errors_are_not_retried():
    scene = Scene(Rule(fault=Fault.DENIED, keys="*/denied"))

    async def scenario():
        with pytest.raises(ObjectNotFoundError):
            await scene.store.get("ns/missing")
        with pytest.raises(OperatingError, match="denied"):
            await scene.store.put("ns/denied", [b"x"])

    asyncio.run(scenario())
    assert scene.pauses == []


@pytest.mark.parametrize("fault", [Fault.RESPONSE_LOST, Fault.APPLIED_LATER])
def test_put_that_finds_its_own_first_attempt_succeeds(fault):
    scene = Scene(Rule(fault=fault, operations=frozenset({"put"}), times_max=1))

    async def scenario():
        put = asyncio.ensure_future(scene.store.put("ns/a", [b"12", b"", b"34"]))
        await scene.faulty.wait_for_late_writes()
        await put
        assert await scene.store.get("ns/a") == b"1234"

    asyncio.run(scenario())


@pytest.mark.parametrize("other", [b"other", b"m", b"mine and more"])
def test_put_that_finds_another_object_fails(other):
    scene = Scene(Rule(fault=Fault.TIMED_OUT, operations=frozenset({"put"}), times_max=1))

    async def scenario():
        await scene.memory.put("ns/a", [other])
        with pytest.raises(ObjectExistsError):
            await scene.store.put("ns/a", [b"mi", b"ne"])
        assert await scene.store.get("ns/a") == other

    asyncio.run(scenario())


def test_replacement_that_takes_effect_late_does_not_undo_a_later_one():
    scene = Scene(Rule(fault=Fault.RESPONSE_LOST, operations=frozenset({"put"}), times_max=1))

    async def scenario():
        await scene.memory.put("ns/a", [b"first"])
        first = await scene.memory.head("ns/a")
        await scene.store.replace("ns/a", [b"second"], first.etag)
        second = await scene.memory.head("ns/a")
        scene.faulty.rules = [Rule(fault=Fault.APPLIED_LATER, times_max=1, seconds=(1, 1))]
        await scene.store.replace("ns/a", [b"third"], second.etag)
        await scene.faulty.wait_for_late_writes()
        assert await scene.memory.get("ns/a") == b"third"
        with pytest.raises(ObjectChangedError):
            await scene.store.replace("ns/a", [b"fourth"], second.etag)

    asyncio.run(scenario())


def test_first_attempt_never_adopts_an_existing_object():
    scene = Scene()

    async def scenario():
        await scene.store.put("ns/a", [b"same"])
        with pytest.raises(ObjectExistsError):
            await scene.store.put("ns/a", [b"same"])

    asyncio.run(scenario())


def test_interrupted_listing_continues_where_it_was():
    scene = Scene(attempts_max=2)
    keys = [f"ns/{number:05d}" for number in range(3 * PAGE_KEYS)]

    async def scenario():
        for key in keys:
            await scene.memory.put(key, [b"x"])
        result: list[str] = []
        async for chunk in scene.store.list("ns/"):
            result += [info.key for info in chunk]
            # Each chunk but the first comes at the second attempt only.
            scene.faulty.rules.append(Rule(fault=Fault.REFUSED, times_max=1))
        assert result == keys

    asyncio.run(scenario())
    assert scene.faulty.injected[Fault.REFUSED] == 3


def test_pause_can_be_cancelled():
    async def forever(_seconds: float) -> None:
        await asyncio.Event().wait()

    async def scenario():
        faulty = FaultyObjectStore(MemoryObjectStore(), random=Random(1))
        faulty.is_down = True
        store = RetryingObjectStore(faulty, attempts_max=3, random=Random(2), sleep=forever)
        put = asyncio.ensure_future(store.put("ns/a", [b"x"]))
        await asyncio.sleep(0)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put

    asyncio.run(scenario())
