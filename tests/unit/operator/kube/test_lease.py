"""Tests of leader election: one operator leads, whatever crashes or becomes unreachable."""

import asyncio
import copy
from random import Random

import pytest

from doubles.virtual_time import run
from kafscale.errors import KubeError
from kafscale.operator.kube.api import Kind, Manifest
from kafscale.operator.kube.lease import Leadership


class FakeLeases:
    """An API server with one lease, which can be slow or unavailable."""

    def __init__(self) -> None:
        self.lease: Manifest | None = None
        self.version = 0
        self.is_unavailable = False
        self.latency_seconds = 0.01

    async def get(self, _kind: Kind, _namespace: str, _name: str) -> Manifest | None:
        await self._respond()
        return copy.deepcopy(self.lease)

    async def create(self, manifest: Manifest) -> Manifest | None:
        await self._respond()
        return None if self.lease else self._write(manifest)

    async def replace(self, manifest: Manifest) -> Manifest | None:
        await self._respond()
        assert self.lease is not None
        if manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            return None
        return self._write(manifest)

    def _write(self, manifest: Manifest) -> Manifest:
        self.version += 1
        self.lease = copy.deepcopy(manifest)
        self.lease["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(self.lease)

    async def _respond(self) -> None:
        await asyncio.sleep(self.latency_seconds)
        if self.is_unavailable:
            raise KubeError("unavailable")


def candidate(leases: FakeLeases, identity: str) -> Leadership:
    return Leadership(
        leases,
        namespace="kafscale",
        name="operator",
        identity=identity,
        monotonic=asyncio.get_running_loop().time,
    )


def test_one_candidate_leads_and_the_other_waits() -> None:
    async def scenario(_: Random) -> None:
        leases = FakeLeases()
        first, second = candidate(leases, "a"), candidate(leases, "b")
        await first.acquire()
        renewing = asyncio.create_task(first.renew())
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(120)
        assert first.is_leader
        assert not second.is_leader
        assert second.holder == "a"
        assert not waiting.done()
        renewing.cancel()
        waiting.cancel()

    run(scenario, seed=0)


def test_crashed_leader_is_replaced_after_the_lease() -> None:
    async def scenario(_: Random) -> None:
        leases = FakeLeases()
        first, second = candidate(leases, "a"), candidate(leases, "b")
        await first.acquire()
        started = asyncio.get_running_loop().time()
        await second.acquire()
        waited = asyncio.get_running_loop().time() - started
        assert 15 <= waited < 22
        assert not first.is_leader
        assert leases.lease is not None
        assert leases.lease["spec"]["leaseTransitions"] == 1

    run(scenario, seed=0)


def test_released_lease_is_acquired_at_once() -> None:
    async def scenario(_: Random) -> None:
        leases = FakeLeases()
        first, second = candidate(leases, "a"), candidate(leases, "b")
        await first.acquire()
        await first.release()
        assert not first.is_leader
        started = asyncio.get_running_loop().time()
        await second.acquire()
        assert asyncio.get_running_loop().time() - started < 1

    run(scenario, seed=0)


@pytest.mark.parametrize("latency_seconds", [0.01, 30])
def test_leader_without_api_server_stops_before_the_lease_ends(latency_seconds: float) -> None:
    async def scenario(_: Random) -> None:
        leases = FakeLeases()
        first = candidate(leases, "a")
        await first.acquire()
        leases.is_unavailable = True
        leases.latency_seconds = latency_seconds
        started = asyncio.get_running_loop().time()
        await first.renew()
        assert asyncio.get_running_loop().time() - started <= 15 - 5

    run(scenario, seed=0)


@pytest.mark.parametrize("seed", range(20))
def test_never_two_leaders_at_once(seed: int) -> None:
    async def scenario(random: Random) -> None:
        leases = FakeLeases()
        candidates = [candidate(leases, name) for name in "abc"]

        async def take_part(each: Leadership) -> None:
            while True:
                await each.acquire()
                renewing = asyncio.create_task(each.renew())
                await asyncio.wait({renewing}, timeout=random.uniform(1, 60))
                renewing.cancel()
                if random.random() < 0.5:
                    await each.release()
                await asyncio.sleep(random.uniform(0, 40))

        tasks = [asyncio.create_task(take_part(each)) for each in candidates]
        terms = 0
        for _ in range(2000):
            await asyncio.sleep(0.25)
            leases.is_unavailable = random.random() < (0.9 if leases.is_unavailable else 0.02)
            leading = [each for each in candidates if each.is_leader]
            assert len(leading) <= 1
            terms += len(leading)
        assert terms, "there was no leader"
        for task in tasks:
            task.cancel()

    run(scenario, seed=seed)
