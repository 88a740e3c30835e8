"""The storage engine in simulated time: thousands of lives, each of them in a few milliseconds.

A run that fails names its seed; it fails in the same way when it is run alone:

    pytest tests/simulation --simulation-runs 1 --simulation-seed 4711

`--simulation-runs 100000` looks longer.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from kafscale.errors import ObjectExistsError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectInfo
from kafscale.testing import virtual_time
from simulation.model import BrokenPromiseError
from simulation.scenario import Scenario
from simulation.seeds import run_each
from simulation.world import World

BROKEN_RUNS_MAX = 60
"""In so many runs every kind of lie must have been found out."""


async def scenario(random: Random) -> None:
    await Scenario(World(random)).run()


@pytest.mark.usefixtures("_strict_log")
@pytest.mark.timeout(120)
def test_every_promise_is_kept_whatever_happens(seeds):
    run_each(scenario, seeds)


def test_a_run_can_be_repeated():
    def objects_after(seed: int) -> list[ObjectInfo]:
        async def remembering(random: Random) -> list[ObjectInfo]:
            world = World(random)
            await Scenario(world).run()
            return [item async for chunk in world.objects.list("simulated/") for item in chunk]

        return virtual_time.run(remembering, seed=seed)

    assert objects_after(3) == objects_after(3)
    assert objects_after(3) != objects_after(4)


# --- the checker is checked -----------------------------------------------------------------------


class Forgetful(MemoryObjectStore):
    """Loses one PUT in fifty, although it has acknowledged it."""

    __slots__ = ("_count", "_suffix")

    def __init__(self, suffix: str) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self._suffix = suffix
        self._count = 0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self._count += key.endswith(self._suffix)
        if key.endswith(self._suffix) and self._count % 50 == 7:
            return
        await super().put(key, parts, create=create)


class Overwriting(MemoryObjectStore):
    """Takes no notice of create-only, so that a fence stops nobody."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:  # noqa: ARG002
        await super().put(key, parts, create=False)


class Forgiving(MemoryObjectStore):
    """Lets a writer believe that an object is its own which was there before."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        try:
            await super().put(key, parts, create=create)
        except ObjectExistsError:
            return


class Hasty(MemoryObjectStore):
    """Acknowledges WAL objects seconds before they can be seen."""

    __slots__ = ("_under_way",)

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self._under_way: set[asyncio.Task[None]] = set()

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        if key.endswith(".kfw"):
            self._under_way.add(asyncio.create_task(self._put_later(key, parts)))
        else:
            await super().put(key, parts, create=create)

    async def _put_later(self, key: str, parts: Sequence[Buffer]) -> None:
        await asyncio.sleep(3)
        with suppress(ObjectExistsError):
            await super().put(key, parts)


@pytest.mark.parametrize(
    "broken",
    [lambda: Forgetful(".kfw"), lambda: Forgetful(".kfs"), Overwriting, Forgiving, Hasty],
    ids=["loses WAL objects", "loses segments", "overwrites", "forgives", "acknowledges early"],
)
@pytest.mark.timeout(120)
def test_a_store_that_breaks_a_law_is_found_out(broken):
    async def doomed(random: Random) -> None:
        await Scenario(World(random, broken())).run()

    for seed in range(BROKEN_RUNS_MAX):
        try:
            virtual_time.run(doomed, seed=seed)
        except BrokenPromiseError:
            return
    pytest.fail(f"nothing was noticed in {BROKEN_RUNS_MAX} runs")
