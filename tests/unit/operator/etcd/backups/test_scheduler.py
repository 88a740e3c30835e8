"""The keeper of snapshots, step by step: in time, out of luck, and after its own death."""

import asyncio

import pytest

from kafscale.admin.etcd.backups.store import Snapshots
from kafscale.config.sections.etcd import Etcd
from kafscale.observability.metrics.operator import SnapshotMetrics
from kafscale.operator.etcd.backups.scheduler import LOOK_MS, SnapshotKeeper
from kafscale.operator.spec.cluster import SnapshotsSpec
from kafscale.storage.objects import MemoryObjectStore
from kafscale.testing import virtual_time
from kafscale.testing.faulty_object_store import FaultyObjectStore
from unit.operator.etcd.members import FakeMember

CYCLE_S = 30
HOUR_S = 3600


class World:
    """A bucket, a member of etcd, and keepers that come and go."""

    def __init__(self, random):
        self.memory = MemoryObjectStore(virtual_time.clock_ms)
        self.bucket = FaultyObjectStore(self.memory, random=random)
        self.snapshots = Snapshots(self.bucket, "prefix", virtual_time.clock_ms)
        self.member = FakeMember()
        self.figures = SnapshotMetrics()
        self.random = random
        self.keeper = self.start()

    def start(self, **changes):
        spec = SnapshotsSpec(**{"retain": 3} | changes)
        self.keeper = SnapshotKeeper(
            self.snapshots,
            spec,
            Etcd(endpoints=("etcd-0",)),
            self.figures,
            random=self.random,
            timer=asyncio.get_running_loop().time,
            connect=lambda _endpoint, _settings: self.member,
        )
        return self.keeper

    async def cycles(self, seconds):
        """Keep as the reconciler does, for so long; the last state."""
        for _ in range(seconds // CYCLE_S):
            await asyncio.sleep(CYCLE_S)
            state = await self.step()
        return state

    async def step(self):
        return await self.keeper.keep(virtual_time.clock_ms())


@pytest.fixture
def play():
    def run(body):
        async def scenario(random):
            return await body(World(random))

        return virtual_time.run(scenario, seed=0)

    return run


def statuses(state):
    return {each.type: (each.status, each.reason) for each in state.conditions}


FRESH = {"EtcdSnapshotAccess": ("True", "Accessible"), "EtcdSnapshot": ("True", "Fresh")}


def test_the_first_is_taken_at_once_and_the_others_by_the_hour(play):
    async def body(world):
        first = await world.step()
        assert first.last_key == "prefix/20250615T150640Z-17.db"
        assert first.last_time == "2025-06-15T15:06:40.000Z"
        assert first.size_bytes > 0
        assert statuses(first) == FRESH
        assert (await world.cycles(HOUR_S - CYCLE_S)).last_key == first.last_key
        assert (await world.cycles(CYCLE_S)).last_key != first.last_key
        await world.cycles(5 * HOUR_S)
        return world.member.snapshots, len(await world.snapshots.list()), world.figures.failures

    assert play(body) == (7, 3, 0)


def test_an_operator_that_takes_over_goes_on_where_the_other_ended(play):
    async def body(world):
        first = await world.step()
        world.start()
        assert await world.step() == first
        await world.cycles(HOUR_S // 2)
        return world.member.snapshots

    assert play(body) == 1


def test_a_bucket_that_is_gone_shows_and_is_tried_again_less_and_less(play):
    async def body(world):
        await world.step()
        world.bucket.is_down = True
        lost = await world.cycles(LOOK_MS // 1000 + CYCLE_S)
        assert statuses(lost) == {
            "EtcdSnapshotAccess": ("False", "NoAccess"),
            "EtcdSnapshot": ("True", "Retrying"),
        }
        assert not world.figures.is_accessible
        assert not world.figures.succeeded
        late = await world.cycles(3 * HOUR_S)
        assert statuses(late)["EtcdSnapshot"] == ("False", "Stale")
        assert 15 < late.failures < 30
        assert world.figures.failures == late.failures
        world.bucket.is_down = False
        whole = await world.cycles(15 * 60)
        assert world.figures.succeeded
        return statuses(whole), whole.failures, world.member.snapshots

    assert play(body) == (FRESH, 0, 2)


def test_an_etcd_that_is_gone_shows_once_there_is_no_snapshot_or_an_old_one(play):
    async def body(world):
        world.member.breaks = True
        none = await world.step()
        assert statuses(none) == {
            "EtcdSnapshotAccess": ("True", "Accessible"),
            "EtcdSnapshot": ("False", "NoSnapshot"),
        }
        assert "it broke off" in none.conditions[1].message
        world.member.breaks = False
        return statuses(await world.cycles(60))

    assert play(body) == FRESH


def test_a_mistake_of_ours_is_told_and_gets_nobody_else_into_trouble(play):
    async def body(world):
        world.member.content = "no bytes"
        return await world.step()

    state = play(body)
    assert statuses(state)["EtcdSnapshot"] == ("False", "NoSnapshot")
    assert "TypeError" in state.conditions[1].message


def test_a_slow_snapshot_goes_on_while_others_are_looked_after(play):
    async def body(world):
        class Slow(FakeMember):
            async def snapshot(self):
                await asyncio.sleep(100)
                async for piece in super().snapshot():
                    yield piece

        world.member = Slow()
        began = virtual_time.clock_ms()
        first = await world.step()
        assert virtual_time.clock_ms() - began < 10_000
        assert first.last_key == ""
        assert statuses(first)["EtcdSnapshot"] == ("Unknown", "NoSnapshot")
        await world.cycles(60)
        assert world.member.snapshots == 0
        done = await world.cycles(60)
        assert statuses(done) == FRESH
        return world.member.snapshots, world.figures.duration_seconds

    assert play(body) == (1, pytest.approx(100))


def test_one_that_is_given_up_does_not_count(play):
    async def body(world):
        class Stuck(FakeMember):
            async def snapshot(self):
                await asyncio.Event().wait()
                yield b""

        world.member = Stuck()
        await world.step()
        await world.keeper.close()
        await world.keeper.close()
        return [info async for chunk in world.memory.list("prefix/") for info in chunk]

    assert play(body) == []


def test_a_bucket_that_was_emptied_is_noticed_at_the_next_look(play):
    async def body(world):
        first = await world.step()
        await world.memory.delete([first.last_key])
        again = await world.cycles(LOOK_MS // 1000 + CYCLE_S)
        return again.last_key not in {"", first.last_key}

    assert play(body)
