"""Who looks after a resource is woken, and never misses it."""

import asyncio
from random import Random

from kafscale.operator.work_queue import Bells, Resource
from kafscale.testing.virtual_time import run

DEMO, OTHER = Resource("Cluster", "default", "demo"), Resource("Cluster", "other", "demo")


def test_it_waits_no_longer_than_it_was_told_to() -> None:
    async def scenario(_: Random) -> None:
        began = asyncio.get_running_loop().time()
        await Bells().wait(DEMO, 30)
        assert asyncio.get_running_loop().time() - began == 30

    run(scenario, seed=0)


def test_a_ring_wakes_it_once() -> None:
    async def scenario(_: Random) -> None:
        bells, now = Bells(), asyncio.get_running_loop().time
        asyncio.get_running_loop().call_later(5, bells.ring, DEMO)
        await bells.wait(DEMO, 30)
        assert now() == 5
        await bells.wait(DEMO, 30)
        assert now() == 35

    run(scenario, seed=0)


def test_what_rings_while_nobody_waits_is_heard_later() -> None:
    async def scenario(_: Random) -> None:
        bells, now = Bells(), asyncio.get_running_loop().time
        bells.ring(DEMO)
        await bells.wait(DEMO, 30)
        assert now() == 0

    run(scenario, seed=0)


def test_all_of_a_namespace_are_rung_for() -> None:
    async def scenario(_: Random) -> None:
        bells, now = Bells(), asyncio.get_running_loop().time
        both = asyncio.gather(bells.wait(DEMO, 30), bells.wait(OTHER, 40))
        await asyncio.sleep(1)
        bells.ring_all("Cluster", "default")
        bells.ring_all("Topic")
        await both
        assert now() == 40

    run(scenario, seed=0)
