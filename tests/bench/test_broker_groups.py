"""Groups: many that send heartbeats and commits, and a large one that rebalances.

The members run in this process; their CPU time is measured separately from the broker's.
"""

import asyncio
import random
import resource
import time
from functools import partial

import pytest
import uvloop

from bench.brokers import KAFKA, Candidate
from bench.classic_member import ClassicMember
from bench.comparison import Figures
from bench.consumer_member import ConsumerMember
from bench.group_member import GroupSpec, wait_until_stable
from bench.group_members import GroupMembers, running, working
from bench.periodic_task import PeriodicTask
from services import java
from services.broker import BrokerProcess
from services.exposition import sample

pytestmark = [
    pytest.mark.bench,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not java.is_available(), reason="Kafka needs Java and Maven"),
]

KINDS = {"classic": ClassicMember, "consumer": ConsumerMember}

GROUPS = 100
MEMBERS_A_GROUP = 10
PERIOD_SECONDS = 1.0
WARM_UP_SECONDS = 3
SECONDS = 15

LARGE_GROUP = 100
LARGE_TOPIC = 300
SHORT_PERIOD_SECONDS = 0.05
"""Members learn of a rebalance by a heartbeat; this short interval hides their timers."""
REBALANCES = 5
REBALANCE_MS_MAX = 2_000


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(autouse=True)
def _raise_file_limit() -> None:
    """Raise the limit of open files: every member has a connection."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# --- many groups at rest ------------------------------------------------------------------------


def test_many_groups(comparisons, candidates, scaled, kind):
    count = GROUPS * MEMBERS_A_GROUP
    comparison = comparisons.new(
        f"{count:,} members in {GROUPS} {kind} groups, a heartbeat and a commit each a second",
        KAFKA,
    )
    for candidate in candidates:
        topic = candidate.new_topic(MEMBERS_A_GROUP)
        comparison.add(candidate.name, uvloop.run(rest(kind, candidate, topic, scaled(SECONDS))))


async def rest(kind: str, candidate: Candidate, topic: str, seconds: int) -> Figures:
    rng = random.Random(0)
    heartbeats, commits = PeriodicTask(PERIOD_SECONDS, rng), PeriodicTask(PERIOD_SECONDS, rng)
    posts = [GroupSpec(f"group-{number}", topic, MEMBERS_A_GROUP) for number in range(GROUPS)]
    async with GroupMembers(KINDS[kind], candidate.address) as group_members:
        groups = [
            await group_members.connect_members(group_spec, MEMBERS_A_GROUP) for group_spec in posts
        ]
        members = [member for group in groups for member in group]
        async with working(members, heartbeats):
            await asyncio.gather(*(wait_until_stable(group, MEMBERS_A_GROUP) for group in groups))
            async with running(commits.run(partial(member.commit, 1)) for member in members):
                return await watched(candidate, heartbeats, commits, seconds)


async def watched(
    candidate: Candidate, heartbeats: PeriodicTask, commits: PeriodicTask, seconds: int
) -> Figures:
    """Measure the broker and the members for some seconds, without the scrapes."""
    writes_before, began = metadata_writes(candidate), time.perf_counter()
    await asyncio.sleep(WARM_UP_SECONDS)
    heartbeats.seconds.clear()
    commits.seconds.clear()
    used_before, own_before = candidate.cpu_seconds(), time.process_time()
    await asyncio.sleep(seconds)
    figures = {
        "CPU %": 100 * (candidate.cpu_seconds() - used_before) / seconds,
        "members' CPU %": 100 * (time.process_time() - own_before) / seconds,
        "requests/s": (len(heartbeats.seconds) + len(commits.seconds)) / seconds,
        "heartbeat p50 ms": heartbeats.percentile_ms(50),
        "heartbeat p95 ms": heartbeats.percentile_ms(95),
        "heartbeat p99 ms": heartbeats.percentile_ms(99),
        "commit p50 ms": commits.percentile_ms(50),
        "commit p95 ms": commits.percentile_ms(95),
        "commit p99 ms": commits.percentile_ms(99),
    }
    if writes_before is not None:
        writes = metadata_writes(candidate) - writes_before
        figures["metadata writes/s"] = writes / (time.perf_counter() - began)
    return figures


def metadata_writes(candidate: Candidate) -> float | None:
    """The number of metadata transactions of groups, if the broker counts them."""
    if not isinstance(candidate.server, BrokerProcess):
        return None
    return sample(candidate.server.http("/metrics")[1], "consumer_transactions_total")


# --- a large group that changes -----------------------------------------------------------------


def test_rebalances_of_a_large_group(comparisons, candidates, kind):
    comparison = comparisons.new(f"rebalances of a {kind} group of {LARGE_GROUP} members", KAFKA)
    for candidate in candidates[:2]:
        group_spec = GroupSpec("large", candidate.new_topic(LARGE_TOPIC), LARGE_TOPIC)
        for figures in uvloop.run(rebalances(kind, candidate.address, group_spec)):
            comparison.add(candidate.name, figures)
            assert candidate.name == KAFKA or max(figures.values()) < REBALANCE_MS_MAX


async def rebalances(kind: str, address: str, group_spec: GroupSpec) -> list[Figures]:
    heartbeats = PeriodicTask(SHORT_PERIOD_SECONDS, random.Random(0))
    result = []
    async with GroupMembers(KINDS[kind], address) as group_members:
        members = await group_members.connect_members(group_spec, LARGE_GROUP)
        async with working(members, heartbeats):
            await wait_until_stable(members, LARGE_TOPIC)
            for _ in range(REBALANCES):
                (newcomer,) = await group_members.connect_members(group_spec, 1)
                async with working([newcomer], heartbeats):
                    joined = await wait_until_stable([*members, newcomer], LARGE_TOPIC)
                await newcomer.leave()
                left = await wait_until_stable(members, LARGE_TOPIC)
                result.append({"ms after a join": joined * 1e3, "ms after a leave": left * 1e3})
    return result
