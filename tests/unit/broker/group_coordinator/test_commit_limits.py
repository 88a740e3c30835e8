"""Limits of offset commits: rates of users and groups, waiting, and back-pressure."""

import asyncio
from math import inf

import pytest

from doubles import virtual_time
from kafscale.broker.group_coordinator.commit_limits import (
    OFFSET_BYTES,
    WAIT_SECONDS_MAX,
    WAITING_BYTES_MAX,
    CommitLimits,
    commit_bytes,
)
from kafscale.config.sections.groups import Offsets
from kafscale.errors import CommitsThrottledError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.observability.metrics.counters import SecurityCounters
from kafscale.text.units import KIB, MIB

SETTINGS = Offsets(user_commit_bytes_per_second=2 * MIB, group_commit_bytes_per_second=MIB)
USER_BURST = 10 * MIB
GROUP_BURST = 5 * MIB


class Harness:
    """Limits that a test changes while they are used."""

    def __init__(self, settings=SETTINGS):
        self.rate_max = inf
        self.counters = SecurityCounters()
        self._loop = asyncio.get_running_loop()
        self.limits = CommitLimits(
            settings,
            self.counters,
            clock=virtual_time.clock_ms,
            timer=self._loop.time,
            user_rate_max=lambda: self.rate_max,
        )

    def is_admitted(self, size_bytes, user="alice", group="readers"):
        return self.limits.try_admit(user, group, size_bytes)

    async def seconds_until_admitted(self, size_bytes, user="alice", group="readers"):
        started = self._loop.time()
        if not self.is_admitted(size_bytes, user, group):
            await self.limits.wait(user, group, size_bytes)
        return self._loop.time() - started


def simulate(body, settings=SETTINGS):
    async def scenario(_random):
        await body(Harness(settings))

    virtual_time.run(scenario, seed=0)


def offsets(count, metadata=""):
    return {
        ("orders", index): CommittedOffset(offset=1, committed_ms=1, metadata=metadata)
        for index in range(count)
    }


def test_size_counts_names_and_metadata_of_every_offset():
    plain = commit_bytes("g", offsets(10))
    assert plain > 10 * OFFSET_BYTES
    assert commit_bytes("g" * 101, offsets(10)) == plain + 10 * 100
    assert commit_bytes("g", offsets(10, "ü" * 50)) == plain + 10 * 100


def test_thousands_of_partitions_every_five_seconds_are_never_throttled():
    async def body(harness):
        size_bytes = commit_bytes("analytics", offsets(7_000))
        for _ in range(100):
            for group in ("analytics", "billing", "shipping", "search"):
                assert harness.is_admitted(size_bytes, group=group)
            await asyncio.sleep(5)
        assert harness.counters.throttled == {}

    simulate(body)


@pytest.mark.parametrize(
    ("groups", "rate", "burst"),
    [
        (1, SETTINGS.group_commit_bytes_per_second, GROUP_BURST),
        (5, SETTINGS.user_commit_bytes_per_second, USER_BURST),
    ],
    ids=["one group", "many groups of a user"],
)
def test_commits_are_delayed_to_the_rate(groups, rate, burst):
    async def body(harness):
        size_bytes, written = 128 * KIB, 0
        loop = asyncio.get_running_loop()
        started = loop.time()
        for number in range(400):
            await harness.seconds_until_admitted(size_bytes, group=f"group-{number % groups}")
            written += size_bytes
        elapsed = loop.time() - started
        assert burst < written <= burst + rate * elapsed
        assert written >= 0.8 * rate * elapsed, "the rate is used"
        assert harness.counters.throttled["offset_commits"] > 100

    simulate(body)


def test_groups_and_users_have_limits_of_their_own():
    async def body(harness):
        assert harness.is_admitted(GROUP_BURST)
        assert not harness.is_admitted(1 * MIB)
        assert harness.is_admitted(1 * MIB, group="others"), "another group"
        assert not harness.is_admitted(1 * MIB, user="bob"), "the same group"
        assert harness.is_admitted(USER_BURST - 6 * MIB, group="third")
        assert not harness.is_admitted(1 * MIB, group="fourth"), "the user's limit"
        assert harness.is_admitted(1 * MIB, user="bob", group="fourth")

    simulate(body)


def test_refused_commit_takes_nothing_of_the_other_limit():
    async def body(harness):
        assert harness.is_admitted(GROUP_BURST)
        for _ in range(100):
            assert not harness.is_admitted(1 * MIB)
        assert harness.is_admitted(USER_BURST - GROUP_BURST, group="others")

    simulate(body)


def test_commit_larger_than_the_burst_is_admitted_once_nothing_else_was():
    async def body(harness):
        assert harness.is_admitted(3 * GROUP_BURST)
        with pytest.raises(CommitsThrottledError):
            await harness.seconds_until_admitted(1)
        await asyncio.sleep(10)
        assert harness.is_admitted(1)

    simulate(body)


def test_commit_is_refused_after_the_longest_wait():
    async def body(harness):
        harness.rate_max = 10 * KIB
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(CommitsThrottledError, match="alice"):
            await harness.seconds_until_admitted(MIB)
        assert loop.time() - started == pytest.approx(WAIT_SECONDS_MAX)

    simulate(body)


def test_small_commits_pass_large_ones_of_the_same_user_under_back_pressure():
    async def body(harness):
        harness.rate_max = 10 * KIB

        async def flood(number):
            while True:
                try:
                    await harness.seconds_until_admitted(2 * MIB, group=f"group-{number}")
                except CommitsThrottledError:
                    continue

        async with asyncio.TaskGroup() as floods:
            tasks = [floods.create_task(flood(number)) for number in range(10)]
            for _ in range(100):
                assert await harness.seconds_until_admitted(300) < 1
                await asyncio.sleep(1)
            for task in tasks:
                task.cancel()

    simulate(body)


def test_back_pressure_bounds_every_user_and_ends():
    async def body(harness):
        harness.rate_max = 10 * KIB
        admitted = {"alice": 0, "bob": 0}
        for _ in range(600):
            for user in admitted:
                admitted[user] += KIB * harness.is_admitted(KIB, user, group=f"group-{user}")
            await asyncio.sleep(0.05)
        for total in admitted.values():
            assert 10 * KIB * 20 < total <= 10 * KIB * (30 + 6)
        harness.rate_max = inf
        await asyncio.sleep(60)
        assert harness.is_admitted(GROUP_BURST)

    simulate(body)


def test_full_store_refuses_commits_without_a_failure():
    async def body(harness):
        harness.rate_max = 0.0
        assert not harness.is_admitted(300)
        with pytest.raises(CommitsThrottledError):
            await harness.seconds_until_admitted(300)

    simulate(body)


def test_waiting_commits_have_a_bound():
    async def body(harness):
        harness.rate_max = 1
        async with asyncio.TaskGroup() as waiting:
            tasks = [
                waiting.create_task(harness.seconds_until_admitted(WAITING_BYTES_MAX // 4))
                for _ in range(4)
            ]
            await asyncio.sleep(0.01)
            with pytest.raises(CommitsThrottledError):
                async with asyncio.timeout(0.1):
                    await harness.seconds_until_admitted(1000)
            for task in tasks:
                task.cancel()
        with pytest.raises(CommitsThrottledError):  # After the longest wait: there is room again.
            await harness.seconds_until_admitted(WAITING_BYTES_MAX // 4)

    simulate(body)


def test_zero_means_no_limit():
    async def body(harness):
        for _ in range(100):
            assert harness.is_admitted(USER_BURST)

    simulate(body, Offsets(user_commit_bytes_per_second=0, group_commit_bytes_per_second=0))


def test_back_pressure_holds_without_configured_limits():
    async def body(harness):
        harness.rate_max = 10 * KIB
        assert not harness.is_admitted(USER_BURST)

    simulate(body, Offsets(user_commit_bytes_per_second=0, group_commit_bytes_per_second=0))


def test_made_up_groups_do_not_reset_the_limit_of_their_user():
    async def body(harness):
        admitted = sum(harness.is_admitted(KIB, group=f"group-{n}") for n in range(30_000))
        assert admitted * KIB == USER_BURST

    simulate(body)
