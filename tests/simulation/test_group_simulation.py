"""Consumer groups in simulated time: members, coordinators and the store fail in every order.

A run that fails names its seed; it fails in the same way when it is run alone:

    pytest tests/simulation/test_group_simulation.py --simulation-runs 1 --simulation-seed 4711
"""

import asyncio
from random import Random

import pytest

from kafscale.groups.record import Kind
from simulation.group_members import ClassicMember, ConsumerMember, Member
from simulation.group_world import GROUP, GroupWorld
from simulation.model import BrokenPromiseError
from simulation.seeds import run_each

CHAOS_SECONDS = 60
CALM_SECONDS = 120
MEMBERS_MAX = 5


class GroupScenario:
    """A minute in which anything happens, and a minute in which everybody gets over it."""

    kinds: tuple[type[Member], ...] = (ClassicMember,)

    def __init__(self, world: GroupWorld) -> None:
        self.world = world
        self.random = world.random
        self.members: list[Member] = []
        self._names = 0

    async def run(self) -> None:
        await self.world.open()
        loop = asyncio.get_running_loop()
        end = loop.time() + CHAOS_SECONDS
        while loop.time() < end:
            await self._something()
            self._check_alive()
            await asyncio.sleep(self.random.expovariate(1.0))
        await self._calm_down()
        await asyncio.sleep(CALM_SECONDS)
        await self._check_settled()
        for member in self.members:
            await member.kill()
        await self.world.close()

    async def _something(self) -> None:
        happening = self.random.choices(
            (self._come, self._leave, self._die, self._pause, self._crash, self._fail),
            weights=(6, 2, 2, 3, 3, 2),
        )[0]
        await happening()

    async def _come(self) -> None:
        if len(self.members) < MEMBERS_MAX:
            self._names += 1
            name = f"m{self._names}"
            instance_id = name if self.random.random() < 0.3 else None
            member = self.random.choice(self.kinds)(self.world, name, instance_id)
            member.start()
            self.members.append(member)

    async def _leave(self) -> None:
        if self.members:
            await self._picked().leave()

    async def _die(self) -> None:
        if self.members:
            await self._picked().kill()

    def _picked(self) -> Member:
        return self.members.pop(self.random.randrange(len(self.members)))

    async def _pause(self) -> None:
        for member in self.members:
            if not member.go_on.is_set():
                member.go_on.set()
            elif self.random.random() < 0.3:
                member.pause()

    async def _crash(self) -> None:
        await self.world.crash(orderly=self.random.random() < 0.5)
        await asyncio.sleep(self.random.uniform(0, 8))
        await self.world.revive()

    async def _fail(self) -> None:
        self.world.store.failing = self.random.choice((0.0, 0.2, 0.9))

    async def _calm_down(self) -> None:
        self.world.store.failing = 0.0
        for member in self.members:
            member.go_on.set()

    def _check_alive(self) -> None:
        for member in self.members:
            assert member.task is not None
            if member.task.done():
                member.task.result()

    async def _check_settled(self) -> None:
        self._check_alive()
        owned = sorted(p for member in self.members for p in member.partitions)
        wanted = list(range(self.world.partition_count)) if self.members else []
        if owned != wanted:
            raise BrokenPromiseError(f"the group has not settled: {owned}")
        coordinator = self.world.life.coordinator
        record = next((it for it in coordinator.list() if it.group_id == GROUP), None)
        if record is not None and record.state != ("Stable" if self.members else "Empty"):
            raise BrokenPromiseError(f"the group is {record.state}")
        # What everybody was promised is there for whoever reads it, in the next life, too.
        await self.world.crash()
        await self.world.revive()
        found = self.world.life.coordinator.fetch(GROUP, None, -1)
        for partition in self.world.promises.committed:
            committed = found.get(("orders", partition))
            self.world.promises.found(partition, committed.offset if committed else -1)


class ConsumerScenario(GroupScenario):
    kinds = (ConsumerMember,)


class MixedScenario(GroupScenario):
    """A group on its way from one protocol to the other, and back."""

    kinds = (ClassicMember, ConsumerMember)

    async def _check_settled(self) -> None:
        await super()._check_settled()
        kinds = {type(member) for member in self.members}
        coordinator = self.world.life.coordinator
        record = next((it for it in coordinator.list() if it.group_id == GROUP), None)
        if record is not None and kinds:
            wanted = Kind.CONSUMER if ConsumerMember in kinds else Kind.CLASSIC
            assert record.kind is wanted


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("_strict_log")
@pytest.mark.parametrize("scenario", [GroupScenario, ConsumerScenario, MixedScenario])
def test_groups_keep_their_promises_whatever_happens(scenario, group_seeds):
    async def story(random: Random) -> None:
        await scenario(GroupWorld(random, is_mixed=scenario is MixedScenario)).run()

    run_each(story, group_seeds)
