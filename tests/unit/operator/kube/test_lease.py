"""Of several operators one leads, whatever dies or stays silent."""

import asyncio
import copy
from random import Random

import pytest

from kafscale.errors import KubeError
from kafscale.operator.kube.api import Manifest
from kafscale.operator.kube.kinds import Kind
from kafscale.operator.kube.lease import Leadership
from kafscale.testing.virtual_time import run


class Leases:
    """An API server that knows leases only, and whom it lets in."""

    def __init__(self) -> None:
        self.lease: Manifest | None = None
        self.version = 0
        self.is_away = False
        self.answers_in_seconds = 0.01

    async def get(self, _kind: Kind, _namespace: str, _name: str) -> Manifest | None:
        await self._answer()
        return copy.deepcopy(self.lease)

    async def create(self, manifest: Manifest) -> Manifest | None:
        await self._answer()
        return None if self.lease else self._written(manifest)

    async def replace(self, manifest: Manifest) -> Manifest | None:
        await self._answer()
        assert self.lease is not None
        if manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return None
        return self._written(manifest)

    def _written(self, manifest: Manifest) -> Manifest:
        self.version += 1
        self.lease = copy.deepcopy(manifest)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)

    async def _answer(self) -> None:
        await asyncio.sleep(self.answers_in_seconds)
        if self.is_away:
            raise KubeError("nobody is there")


def contender(leases: Leases, identity: str) -> Leadership:
    return Leadership(
        leases,
        namespace="kafscale",
        name="operator",
        identity=identity,
        steady=asyncio.get_running_loop().time,
    )


def test_one_leads_and_the_other_stands_by() -> None:
    async def scenario(_: Random) -> None:
        leases = Leases()
        first, second = contender(leases, "a"), contender(leases, "b")
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(120)
        assert first.leads
        assert not second.leads
        assert second.holder == "a"
        assert not waiting.done()
        keeping.cancel()
        waiting.cancel()

    run(scenario, seed=0)


def test_who_dies_is_followed_after_the_lease() -> None:
    async def scenario(_: Random) -> None:
        leases = Leases()
        first, second = contender(leases, "a"), contender(leases, "b")
        await first.acquire()
        began = asyncio.get_running_loop().time()
        await second.acquire()
        waited = asyncio.get_running_loop().time() - began
        assert 15 <= waited < 22
        assert not first.leads
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 1

    run(scenario, seed=0)


def test_who_stops_on_purpose_is_followed_at_once() -> None:
    async def scenario(_: Random) -> None:
        leases = Leases()
        first, second = contender(leases, "a"), contender(leases, "b")
        await first.acquire()
        await first.release()
        assert not first.leads
        began = asyncio.get_running_loop().time()
        await second.acquire()
        assert asyncio.get_running_loop().time() - began < 1

    run(scenario, seed=0)


@pytest.mark.parametrize("answers_in_seconds", [0.01, 30])
def test_a_leader_that_cannot_ask_stops_before_another_may_begin(answers_in_seconds: float) -> None:
    async def scenario(_: Random) -> None:
        leases = Leases()
        first = contender(leases, "a")
        await first.acquire()
        leases.is_away = True
        leases.answers_in_seconds = answers_in_seconds
        began = asyncio.get_running_loop().time()
        await first.keep()
        assert asyncio.get_running_loop().time() - began <= 15 - 5

    run(scenario, seed=0)


@pytest.mark.parametrize("seed", range(20))
def test_two_never_lead_at_once(seed: int) -> None:
    async def scenario(random: Random) -> None:
        leases = Leases()
        contenders = [contender(leases, name) for name in "abc"]

        async def live(one: Leadership) -> None:
            while True:
                await one.acquire()
                keeping = asyncio.create_task(one.keep())
                await asyncio.wait({keeping}, timeout=random.uniform(1, 60))
                keeping.cancel()
                if random.random() < 0.5:
                    await one.release()
                await asyncio.sleep(random.uniform(0, 40))

        lives = [asyncio.create_task(live(one)) for one in contenders]
        terms = 0
        for _ in range(2000):
            await asyncio.sleep(0.25)
            leases.is_away = random.random() < (0.9 if leases.is_away else 0.02)
            leading = [one for one in contenders if one.leads]
            assert len(leading) <= 1
            terms += len(leading)
        assert terms, "nobody ever led"
        for task in lives:
            task.cancel()

    run(scenario, seed=seed)
