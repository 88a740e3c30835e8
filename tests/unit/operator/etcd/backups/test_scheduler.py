"""Tests of the snapshot scheduler: on time, after failures, and after an operator's restart."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.faulty_object_store import FaultyObjectStore
from kafscale.admin.etcd.backups.store import SnapshotStore
from kafscale.config.sections.etcd import Etcd
from kafscale.observability.metrics.operator import SnapshotMetrics
from kafscale.operator.etcd.backups.scheduler import CHECK_INTERVAL_MS, SnapshotScheduler
from kafscale.operator.spec.cluster import SnapshotsSpec
from kafscale.storage.objects.memory import MemoryObjectStore
from unit.operator.etcd.members import FakeMember

CYCLE_S = 30
HOUR_S = 3600


class SchedulerFixture:
    """A bucket, an etcd member, and a scheduler that can be restarted."""

    def __init__(self, random):
        self.memory = MemoryObjectStore(virtual_time.clock_ms)
        self.bucket = FaultyObjectStore(self.memory, random=random)
        self.snapshots = SnapshotStore(self.bucket, "prefix", virtual_time.clock_ms)
        self.member = FakeMember()
        self.metrics = SnapshotMetrics()
        self.random = random
        self.scheduler = self.start()

    def start(self, **changes):
        spec = SnapshotsSpec(**{"retain": 3} | changes)
        self.scheduler = SnapshotScheduler(
            self.snapshots,
            spec,
            Etcd(endpoints=("etcd-0",)),
            self.metrics,
            random=self.random,
            timer=asyncio.get_running_loop().time,
            connect=lambda _endpoint, _settings: self.member,
        )
        return self.scheduler

    async def run_for(self, seconds):
        """Reconcile periodically for this time; return the last state."""
        for _ in range(seconds // CYCLE_S):
            await asyncio.sleep(CYCLE_S)
            state = await self.step()
        return state

    async def step(self):
        return await self.scheduler.reconcile(virtual_time.clock_ms())


@pytest.fixture
def run_test():
    def run(body):
        async def scenario(random):
            return await body(SchedulerFixture(random))

        return virtual_time.run(scenario, seed=0)

    return run


def statuses(state):
    return {each.type: (each.status, each.reason) for each in state.conditions}


FRESH = {"EtcdSnapshotAccess": ("True", "Accessible"), "EtcdSnapshot": ("True", "Fresh")}


def test_first_snapshot_is_taken_at_once_and_the_others_hourly(run_test):
    async def body(fixture):
        first = await fixture.step()
        assert first.last_key == "prefix/20250615T150640Z-17.db"
        assert first.last_time == "2025-06-15T15:06:40.000Z"
        assert first.size_bytes > 0
        assert statuses(first) == FRESH
        assert (await fixture.run_for(HOUR_S - CYCLE_S)).last_key == first.last_key
        assert (await fixture.run_for(CYCLE_S)).last_key != first.last_key
        await fixture.run_for(5 * HOUR_S)
        return (
            fixture.member.snapshots,
            len(await fixture.snapshots.list()),
            fixture.metrics.failures,
        )

    assert run_test(body) == (7, 3, 0)


def test_new_operator_continues_from_the_bucket(run_test):
    async def body(fixture):
        first = await fixture.step()
        fixture.start()
        assert await fixture.step() == first
        await fixture.run_for(HOUR_S // 2)
        return fixture.member.snapshots

    assert run_test(body) == 1


def test_unavailable_bucket_is_reported_and_retried_with_backoff(run_test):
    async def body(fixture):
        await fixture.step()
        fixture.bucket.is_down = True
        failed = await fixture.run_for(CHECK_INTERVAL_MS // 1000 + CYCLE_S)
        assert statuses(failed) == {
            "EtcdSnapshotAccess": ("False", "NoAccess"),
            "EtcdSnapshot": ("True", "Retrying"),
        }
        assert not fixture.metrics.is_accessible
        assert not fixture.metrics.succeeded
        stale = await fixture.run_for(3 * HOUR_S)
        assert statuses(stale)["EtcdSnapshot"] == ("False", "Stale")
        assert 15 < stale.failures < 30
        assert fixture.metrics.failures == stale.failures
        fixture.bucket.is_down = False
        recovered = await fixture.run_for(15 * 60)
        assert fixture.metrics.succeeded
        return statuses(recovered), recovered.failures, fixture.member.snapshots

    assert run_test(body) == (FRESH, 0, 2)


def test_unavailable_etcd_is_reported(run_test):
    async def body(fixture):
        fixture.member.fails = True
        failed = await fixture.step()
        assert statuses(failed) == {
            "EtcdSnapshotAccess": ("True", "Accessible"),
            "EtcdSnapshot": ("False", "NoSnapshot"),
        }
        assert "connection broke off" in failed.conditions[1].message
        fixture.member.fails = False
        return statuses(await fixture.run_for(60))

    assert run_test(body) == FRESH


def test_bug_is_reported_and_does_not_propagate(run_test):
    async def body(fixture):
        fixture.member.content = "no bytes"
        return await fixture.step()

    state = run_test(body)
    assert statuses(state)["EtcdSnapshot"] == ("False", "NoSnapshot")
    assert "TypeError" in state.conditions[1].message


def test_slow_snapshot_does_not_block_the_reconciler(run_test):
    async def body(fixture):
        class Slow(FakeMember):
            async def snapshot(self):
                await asyncio.sleep(100)
                async for piece in super().snapshot():
                    yield piece

        fixture.member = Slow()
        started = virtual_time.clock_ms()
        first = await fixture.step()
        assert virtual_time.clock_ms() - started < 10_000
        assert first.last_key == ""
        assert statuses(first)["EtcdSnapshot"] == ("Unknown", "NoSnapshot")
        await fixture.run_for(60)
        assert fixture.member.snapshots == 0
        finished = await fixture.run_for(60)
        assert statuses(finished) == FRESH
        return fixture.member.snapshots, fixture.metrics.duration_seconds

    assert run_test(body) == (1, pytest.approx(100))


def test_cancelled_snapshot_leaves_no_object(run_test):
    async def body(fixture):
        class Stuck(FakeMember):
            async def snapshot(self):
                await asyncio.Event().wait()
                yield b""

        fixture.member = Stuck()
        await fixture.step()
        await fixture.scheduler.close()
        await fixture.scheduler.close()
        return [info async for chunk in fixture.memory.list("prefix/") for info in chunk]

    assert run_test(body) == []


def test_emptied_bucket_is_noticed_at_the_next_check(run_test):
    async def body(fixture):
        first = await fixture.step()
        await fixture.memory.delete([first.last_key])
        again = await fixture.run_for(CHECK_INTERVAL_MS // 1000 + CYCLE_S)
        return again.last_key not in {"", first.last_key}

    assert run_test(body)
