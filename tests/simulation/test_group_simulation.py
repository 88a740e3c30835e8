"""Consumer groups in simulated time: members, coordinators and the store fail in any order.

A failing run names its seed; it fails in the same way when it is run alone:

    pytest tests/simulation/test_group_simulation.py --simulation-runs 1 --simulation-seed 4711
"""

import asyncio
from random import Random

import pytest

from kafscale.groups.model import GroupType
from simulation.group_cluster import GROUP, NODES, SHARDS, STANDALONE_GROUP, TOPIC, GroupCluster
from simulation.group_members import ClassicMember, ConsumerMember, Member, StandaloneCommitter
from simulation.model import InvariantViolationError
from simulation.seeds import run_each

CHAOS_SECONDS = 60
RECOVERY_SECONDS = 120
MEMBERS_MAX = 5


class GroupScenario:
    """A minute of random events, and a time to recover."""

    member_types: tuple[type[Member], ...] = (ClassicMember,)
    responds_after_lease = True
    """Whether a broker may respond after its lease has ended: what is written is guarded. Only
    the plain heartbeats of consumer groups rely on the lease alone.
    """

    def __init__(self, cluster: GroupCluster) -> None:
        self.cluster = cluster
        self.random = cluster.random
        self.members: list[Member] = []
        self._names = 0

    async def run(self) -> None:
        await self.cluster.open()
        committer = StandaloneCommitter(self.cluster)
        committer.start()
        loop = asyncio.get_running_loop()
        end = loop.time() + CHAOS_SECONDS
        while loop.time() < end:
            await self._random_event()
            self._check_alive()
            await asyncio.sleep(self.random.expovariate(1.0))
        await self._stop_faults()
        await asyncio.sleep(RECOVERY_SECONDS)
        await self._check_stable()
        for member in (*self.members, committer):
            await member.kill()
        await self._check_committed()
        await self.cluster.close()

    async def _random_event(self) -> None:
        action = self.random.choices(
            (
                self._add_member,
                self._leave,
                self._kill_member,
                self._pause,
                self._crash,
                self._fail,
                self._transfer,
                self._take_over,
            ),
            weights=(6, 2, 2, 3, 3, 2, 3, 3),
        )[0]
        await action()

    async def _add_member(self) -> None:
        if len(self.members) < MEMBERS_MAX:
            self._names += 1
            name = f"m{self._names}"
            instance_id = name if self.random.random() < 0.3 else None
            member = self.random.choice(self.member_types)(self.cluster, name, instance_id)
            member.start()
            self.members.append(member)

    async def _leave(self) -> None:
        if self.members:
            await self._picked().leave()

    async def _kill_member(self) -> None:
        if self.members:
            await self._picked().kill()

    def _picked(self) -> Member:
        return self.members.pop(self.random.randrange(len(self.members)))

    async def _pause(self) -> None:
        for member in self.members:
            if not member.resumed.is_set():
                member.resumed.set()
            elif self.random.random() < 0.3:
                member.pause()

    async def _crash(self) -> None:
        """A broker crashes and restarts later; one of the two takes over its shards."""
        cluster = self.cluster
        node, shards = self._random_owner()
        await cluster.crash(node, orderly=self.random.random() < 0.5)
        await asyncio.sleep(self.random.uniform(0, 8))
        if self.random.random() < 0.5:
            await cluster.take_over(other(node), shards)
            await cluster.start_broker(node)
        else:
            await cluster.start_broker(node)
            await cluster.take_over(node, shards)

    async def _transfer(self) -> None:
        """Some of a broker's shards are transferred to the other one."""
        node, shards = self._random_owner()
        count = self.random.randint(1, len(shards))
        await self.cluster.transfer(other(node), self.random.sample(shards, count))

    async def _take_over(self) -> None:
        """A broker has lost its lease, but continues until it notices."""
        node, shards = self._random_owner()
        stale = self.cluster.live_brokers[node]
        stale.lease_is_valid = self.responds_after_lease and self.random.random() < 0.5
        await asyncio.sleep(self.random.uniform(0, 2))
        await self.cluster.take_over(other(node), shards)
        await asyncio.sleep(self.random.uniform(0, 5))
        self.cluster.reregister(node)

    def _random_owner(self) -> tuple[int, list[int]]:
        """A broker that owns shards, and its shards."""
        owner = self.cluster.owner(self.random.choice((GROUP, STANDALONE_GROUP)))
        return owner.node, [shard for shard in SHARDS if self.cluster.owners[shard] is owner]

    async def _fail(self) -> None:
        self.cluster.store.failing = self.random.choice((0.0, 0.2, 0.9))

    async def _stop_faults(self) -> None:
        self.cluster.store.failing = 0.0
        for member in self.members:
            member.resumed.set()

    def _check_alive(self) -> None:
        for member in self.members:
            assert member.task is not None
            if member.task.done():
                member.task.result()

    async def _check_stable(self) -> None:
        self._check_alive()
        owned = sorted(p for member in self.members for p in member.partitions)
        expected = list(range(self.cluster.partition_count)) if self.members else []
        if owned != expected:
            raise InvariantViolationError(f"the group is not stable: {owned}")
        coordinator = self.cluster.owner(GROUP).coordinator
        record = next((it for it in coordinator.list() if it.group_id == GROUP), None)
        if record is not None and record.state != ("Stable" if self.members else "Empty"):
            raise InvariantViolationError(f"the group is {record.state}")

    async def _check_committed(self) -> None:
        """Everything acknowledged can be read in the next session, too."""
        await self.cluster.crash(0)
        await self.cluster.crash(1)
        await self.cluster.store.wait_for_late_commits()
        await self.cluster.start_broker(0)
        await self.cluster.take_over(0, SHARDS)
        reader = self.cluster.live_brokers[0].coordinator
        for group_id, partition in self.cluster.invariants.committed:
            value = reader.fetch(group_id, None, -1).get((TOPIC, partition))
            offset = value.offset if value else -1
            self.cluster.invariants.check_committed(group_id, partition, offset)


def other(node: int) -> int:
    [result] = set(NODES) - {node}
    return result


class ConsumerScenario(GroupScenario):
    member_types = (ConsumerMember,)
    responds_after_lease = False


class MixedScenario(GroupScenario):
    """A group that is upgraded and downgraded."""

    member_types = (ClassicMember, ConsumerMember)
    responds_after_lease = False

    async def _check_stable(self) -> None:
        await super()._check_stable()
        member_types = {type(member) for member in self.members}
        coordinator = self.cluster.owner(GROUP).coordinator
        record = next((it for it in coordinator.list() if it.group_id == GROUP), None)
        if record is not None and member_types:
            expected = GroupType.CONSUMER if ConsumerMember in member_types else GroupType.CLASSIC
            assert record.group_type is expected


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("_strict_log")
@pytest.mark.parametrize("scenario", [GroupScenario, ConsumerScenario, MixedScenario])
def test_groups_keep_their_invariants(scenario, group_seeds):
    async def run(random: Random) -> None:
        await scenario(GroupCluster(random, is_mixed=scenario is MixedScenario)).run()

    run_each(run, group_seeds)
