"""The storage engine in simulated time: thousands of runs, each in a few milliseconds.

A failing run names its seed; it fails in the same way when it is run alone:

    pytest tests/simulation --simulation-runs 1 --simulation-seed 4711

`--simulation-runs 100000` takes longer.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from doubles import virtual_time
from kafscale.errors import ObjectExistsError, OperatingError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectInfo
from simulation.cluster import SimulatedCluster
from simulation.features import ENABLED, Feature
from simulation.model import InvariantViolationError
from simulation.scenario import Scenario
from simulation.seeds import run_each

FAULTY_RUNS_MAX = 60
"""Within this number of runs every kind of fault must be detected."""


async def scenario(random: Random) -> None:
    await Scenario(SimulatedCluster(random)).run()


@pytest.mark.usefixtures("_strict_log")
@pytest.mark.timeout(120)
def test_engine_keeps_its_invariants(seeds):
    run_each(scenario, seeds)


@pytest.mark.usefixtures("_damage_log")
@pytest.mark.timeout(120)
def test_damage_is_limited_to_the_damaged_objects(few_seeds):
    async def damaging_scenario(random: Random) -> None:
        # Without markers that are lost, a transaction would stay open.
        features = ENABLED - {Feature.TRANSACTIONS}
        features |= {Feature.DAMAGED_SEGMENTS, Feature.DAMAGED_WAL}
        await Scenario(SimulatedCluster(random, features=features)).run()

    run_each(damaging_scenario, few_seeds)


def test_run_is_deterministic():
    def objects_after(seed: int) -> list[ObjectInfo]:
        async def listing(random: Random) -> list[ObjectInfo]:
            cluster = SimulatedCluster(random)
            await Scenario(cluster).run()
            return [item async for chunk in cluster.objects.list("simulated/") for item in chunk]

        return virtual_time.run(listing, seed=seed)

    assert objects_after(3) == objects_after(3)
    assert objects_after(3) != objects_after(4)


# --- tests of the checker -------------------------------------------------------------------------


class LossyStore(MemoryObjectStore):
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


class OverwritingStore(MemoryObjectStore):
    """Ignores create-only, so that a fence has no effect."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:  # noqa: ARG002
        await super().put(key, parts, create=False)


class NonExclusiveStore(MemoryObjectStore):
    """Reports success for a create-only PUT of an existing object."""

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        try:
            await super().put(key, parts, create=create)
        except ObjectExistsError:
            return


class EarlyAckStore(MemoryObjectStore):
    """Acknowledges WAL objects seconds before they are visible."""

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
    [
        lambda: LossyStore(".kfw"),
        lambda: LossyStore(".kfs"),
        OverwritingStore,
        NonExclusiveStore,
        EarlyAckStore,
    ],
    ids=[
        "loses WAL objects",
        "loses segments",
        "overwrites",
        "not exclusive",
        "acknowledges early",
    ],
)
@pytest.mark.timeout(120)
def test_violation_by_a_broken_store_is_detected(broken):
    async def faulty_scenario(random: Random) -> None:
        await Scenario(SimulatedCluster(random, broken())).run()

    for seed in range(FAULTY_RUNS_MAX):
        try:
            virtual_time.run(faulty_scenario, seed=seed)
        except InvariantViolationError:
            return
        except OperatingError:
            continue  # The engine has noticed something, too.
    pytest.fail(f"nothing was noticed in {FAULTY_RUNS_MAX} runs")
