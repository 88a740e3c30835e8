"""Whole brokers in simulated time: registration, ownership, transfers, controller, topics, storage.

A failing run names its seed; it fails in the same way when it is run alone:

    pytest tests/simulation/test_node_simulation.py --simulation-runs 1 --simulation-seed 4711

`--simulation-runs` counts runs of the engine; there is one of whole brokers for every ten.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from doubles import virtual_time
from doubles.faulty_metadata_store import MetadataFault
from kafscale.errors import OperatingError
from kafscale.records.checksum import Buffer
from kafscale.storage.objects.memory import MemoryObjectStore
from kafscale.storage.objects.store import ObjectInfo
from simulation.model import InvariantViolationError
from simulation.node_cluster import NodeCluster
from simulation.node_scenario import NodeScenario
from simulation.seeds import run_each

# A killed process leaves coroutines behind that it has not started.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine '.*' was never awaited:RuntimeWarning")

FAULTY_RUNS_MAX = 40
"""Within this number of runs a violation must be detected, and every fault occur."""


@pytest.mark.timeout(120)
def test_brokers_keep_their_invariants(node_seeds, logged_errors):
    async def scenario(random: Random) -> None:
        await NodeScenario(NodeCluster(random), logged_errors).run()

    run_each(scenario, node_seeds)


def test_run_is_deterministic(logged_errors):
    def objects_after(seed: int) -> list[ObjectInfo]:
        async def listing(random: Random) -> list[ObjectInfo]:
            cluster = NodeCluster(random)
            await NodeScenario(cluster, logged_errors).run()
            return [item async for page in cluster.objects.list("simulated/") for item in page]

        return virtual_time.run(listing, seed=seed)

    assert objects_after(3) == objects_after(3)
    assert objects_after(3) != objects_after(4)


# --- tests of the checker -------------------------------------------------------------------------


class LossyObjectStore(MemoryObjectStore):
    """Loses one segment in ten, although it has acknowledged it."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        super().__init__(virtual_time.clock_ms, yields=True)
        self._count = 0

    async def put(self, key: str, parts: Sequence[Buffer], *, create: bool = True) -> None:
        self._count += key.endswith(".kfs")
        if not key.endswith(".kfs") or self._count % 10:
            await super().put(key, parts, create=create)


@pytest.mark.timeout(120)
def test_loss_of_segments_is_detected(logged_errors):
    async def faulty_scenario(random: Random) -> None:
        logged_errors.clear()
        await NodeScenario(NodeCluster(random, LossyObjectStore()), logged_errors).run()

    for seed in range(FAULTY_RUNS_MAX):
        try:
            virtual_time.run(faulty_scenario, seed=seed, time_max_s=1200)
        except (InvariantViolationError, virtual_time.StuckError):
            return  # A read that is repeated without end has noticed it, too.
        except OperatingError:
            continue  # A broker has noticed something, too.
    pytest.fail(f"nothing was noticed in {FAULTY_RUNS_MAX} runs")


def test_every_fault_of_the_metadata_connection_occurs(logged_errors):
    injected: Counter[MetadataFault] = Counter()

    async def scenario(random: Random) -> None:
        cluster = NodeCluster(random)
        await NodeScenario(cluster, logged_errors).run()
        injected.update(cluster.injected_metadata_faults())

    for seed in range(FAULTY_RUNS_MAX):
        virtual_time.run(scenario, seed=seed)
        if injected.keys() == set(MetadataFault):
            return
    pytest.fail(f"only {injected} in {FAULTY_RUNS_MAX} runs")
