"""Consumer groups in simulated time: members, coordinators and the store fail in every order.

A run that fails names its seed; it fails in the same way when it is run alone:

    pytest tests/simulation/test_group_simulation.py --simulation-runs 1 --simulation-seed 4711
"""

import asyncio
from random import Random

import pytest

from kafscale.groups.model import GroupType
from simulation.group_members import Bystander, ClassicMember, ConsumerMember, Member
from simulation.group_world import BYSTANDERS, GROUP, NODES, SHARDS, TOPIC, GroupWorld
from simulation.model import BrokenPromiseError
from simulation.seeds import run_each

CHAOS_SECONDS = 60
CALM_SECONDS = 120
MEMBERS_MAX = 5


class GroupScenario:
    """A minute in which anything happens, and a minute in which everybody gets over it."""

    kinds: tuple[type[Member], ...] = (ClassicMember,)
    answers_too_long = True
    """Whether one that was taken over from may answer for longer than its lease: what is written
    proves itself. Only the plain heartbeats of consumer groups rely on the lease alone."""

    def __init__(self, world: GroupWorld) -> None:
        self.world = world
        self.random = world.random
        self.members: list[Member] = []
        self._names = 0

    async def run(self) -> None:
        await self.world.open()
        bystander = Bystander(self.world)
        bystander.start()
        loop = asyncio.get_running_loop()
        end = loop.time() + CHAOS_SECONDS
        while loop.time() < end:
            await self._something()
            self._check_alive()
            await asyncio.sleep(self.random.expovariate(1.0))
        await self._calm_down()
        await asyncio.sleep(CALM_SECONDS)
        await self._check_settled()
        for member in (*self.members, bystander):
            await member.kill()
        await self.world.close()

    async def _something(self) -> None:
        happening = self.random.choices(
            (
                self._come,
                self._leave,
                self._die,
                self._pause,
                self._crash,
                self._fail,
                self._hand_over,
                self._take_over,
            ),
            weights=(6, 2, 2, 3, 3, 2, 3, 3),
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
        """A broker dies; it comes back after a while, and somebody has its shards by then."""
        world = self.world
        node, shards = self._picked_owner()
        await world.crash(node, orderly=self.random.random() < 0.5)
        await asyncio.sleep(self.random.uniform(0, 8))
        if self.random.random() < 0.5:
            await world.take(other(node), shards)
            await world.revive(node)
        else:
            await world.revive(node)
            await world.take(node, shards)

    async def _hand_over(self) -> None:
        """Some of the shards of a broker are moved to the other one."""
        node, shards = self._picked_owner()
        count = self.random.randint(1, len(shards))
        await self.world.hand_over(other(node), self.random.sample(shards, count))

    async def _take_over(self) -> None:
        """A broker has lost its lease, but goes on with what it was about, until it notices."""
        node, shards = self._picked_owner()
        stale = self.world.lives[node]
        stale.is_proven = self.answers_too_long and self.random.random() < 0.5
        await asyncio.sleep(self.random.uniform(0, 2))
        await self.world.take(other(node), shards)
        await asyncio.sleep(self.random.uniform(0, 5))
        self.world.renew(node)

    def _picked_owner(self) -> tuple[int, list[int]]:
        """A broker that owns shards, and which."""
        owner = self.world.owner(self.random.choice((GROUP, BYSTANDERS)))
        return owner.node, [shard for shard in SHARDS if self.world.owners[shard] is owner]

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
        coordinator = self.world.owner(GROUP).coordinator
        record = next((it for it in coordinator.list() if it.group_id == GROUP), None)
        if record is not None and record.state != ("Stable" if self.members else "Empty"):
            raise BrokenPromiseError(f"the group is {record.state}")
        # What everybody was promised is there for whoever reads it, in the next life, too.
        await self.world.crash(0)
        await self.world.crash(1)
        await self.world.revive(0)
        await self.world.take(0, SHARDS)
        reader = self.world.lives[0].coordinator
        for group_id, partition in self.world.promises.committed:
            found = reader.fetch(group_id, None, -1).get((TOPIC, partition))
            offset = found.offset if found else -1
            self.world.promises.check_committed(group_id, partition, offset)


def other(node: int) -> int:
    [found] = set(NODES) - {node}
    return found


class ConsumerScenario(GroupScenario):
    kinds = (ConsumerMember,)
    answers_too_long = False


class MixedScenario(GroupScenario):
    """A group on its way from one protocol to the other, and back."""

    kinds = (ClassicMember, ConsumerMember)
    answers_too_long = False

    async def _check_settled(self) -> None:
        await super()._check_settled()
        kinds = {type(member) for member in self.members}
        coordinator = self.world.owner(GROUP).coordinator
        record = next((it for it in coordinator.list() if it.group_id == GROUP), None)
        if record is not None and kinds:
            wanted = GroupType.CONSUMER if ConsumerMember in kinds else GroupType.CLASSIC
            assert record.group_type is wanted


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("_strict_log")
@pytest.mark.parametrize("scenario", [GroupScenario, ConsumerScenario, MixedScenario])
def test_groups_keep_their_promises_whatever_happens(scenario, group_seeds):
    async def story(random: Random) -> None:
        await scenario(GroupWorld(random, is_mixed=scenario is MixedScenario)).run()

    run_each(story, group_seeds)
