"""Unavailability of partitions when a broker is killed, and when it is stopped gracefully.

There are three brokers. A partition is available if it accepts a record and returns the newest
durable one. The killed broker is the controller, the worst case. Others take over its partitions
when its lease ends, so the time is counted from there until each has a new durable record; the last
record before was only in the WAL.
"""

import asyncio
import time
from pathlib import Path

import pytest
import uvloop

from bench.cluster_probe import PAUSE_S, Probe, ProbeResult
from bench.cluster_servers import DirectCluster
from bench.comparison import Figures
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import EventKind
from kafscale.metadata.store.etcd.store import EtcdStore

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

BROKERS = 3
SERVED_S_MAX = 5.0
"""After the end of a lease."""
MOVED_S_MAX = 1.0
"""From the last response of the old owner to the first one of the new owner."""
WAIT_S_MAX = 60
LEADER_ACKS = 1


@pytest.fixture(params=[100, 1_000])
def partitions(request, scaled):
    return scaled(request.param)


@pytest.fixture
def cluster(tmp_path: Path):
    with DirectCluster(tmp_path, brokers=BROKERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def handovers(comparisons):
    return comparisons.new(f"one of {BROKERS} brokers is asked to stop")


@pytest.fixture(scope="module")
def takeovers(comparisons):
    return comparisons.new(
        f"one of {BROKERS} brokers is killed: seconds after the end of its lease"
    )


def test_stopped_and_killed_broker(handovers, takeovers, cluster, partitions):
    topic = cluster.new_topic(partitions)
    planned, unplanned = uvloop.run(scenario(cluster, topic, partitions))
    handovers.add(f"{partitions:,} partitions", planned)
    takeovers.add(f"{partitions:,} partitions", unplanned)
    assert planned["longest pause ms"] <= 1000 * MOVED_S_MAX
    assert unplanned["all served s"] <= SERVED_S_MAX


async def scenario(cluster: DirectCluster, topic: str, count: int) -> tuple[Figures, Figures]:
    async with Probe(cluster.addresses, topic) as probe:
        await probe.fill(range(count))
        planned = await asked_to_stop(cluster, probe, broker_id=BROKERS)
        cluster.nodes[BROKERS].start()
        await asyncio.to_thread(cluster.wait_until_settled)
        await probe.fill(range(count))
        controller_id = await probe.controller_id(through=1)
        unplanned = await killed(cluster, probe, controller_id)
    return planned, unplanned


# --- planned ------------------------------------------------------------------------------------


async def asked_to_stop(cluster: DirectCluster, probe: Probe, broker_id: int) -> Figures:
    """Check its partitions continuously while it transfers them."""
    through = other_than(broker_id)
    left = led_by(broker_id, await probe.leaders(through))
    last: dict[int, ProbeResult] = {}
    pauses_ms: list[float] = []
    rounds = 0
    requested = time.perf_counter()
    stopping = asyncio.create_task(asyncio.to_thread(cluster.nodes[broker_id].terminate))
    async with asyncio.timeout(WAIT_S_MAX):
        while left:
            # With acks=1, because it is the pause that counts, and not how long a PUT takes.
            results = await probe.check(left, through=through, acks=LEADER_ACKS)
            for partition, response in results.items():
                if response.leader_id != broker_id:
                    before = last[partition].seconds if partition in last else requested
                    pauses_ms.append(1000 * (response.seconds - before))
                    left.remove(partition)
                last[partition] = response
            rounds += 1
            await asyncio.sleep(PAUSE_S)
    moved = time.perf_counter()
    await stopping
    return {
        "of it": len(pauses_ms),
        "median pause ms": sorted(pauses_ms)[len(pauses_ms) // 2],
        "longest pause ms": max(pauses_ms),
        "all moved s": moved - requested,
        "stopped s": time.perf_counter() - requested,
        "asked every ms": 1000 * (moved - requested) / rounds,
    }


# --- unplanned ----------------------------------------------------------------------------------


async def killed(cluster: DirectCluster, probe: Probe, broker_id: int) -> Figures:
    through = other_than(broker_id)
    left = led_by(broker_id, await probe.leaders(through))
    store = EtcdStore(cluster.etcd.settings())
    try:
        ending = asyncio.create_task(end_of_registration(store, broker_id))
        cluster.nodes[broker_id].kill()
        killed_at = time.perf_counter()
        ended_at = await ending
    finally:
        await store.close()
    served: list[float] = []
    async with asyncio.timeout(WAIT_S_MAX):
        while left:
            results = await probe.check(left, through=through, excluding=broker_id)
            served += [response.seconds - ended_at for response in results.values()]
            left -= results.keys()
            await asyncio.sleep(PAUSE_S)
    return {
        "of it": len(served),
        "lease s": ended_at - killed_at,
        "first served s": min(served),
        "half served s": sorted(served)[len(served) // 2],
        "all served s": max(served),
    }


async def end_of_registration(store: EtcdStore, broker_id: int) -> float:
    """When the registration of a broker is deleted, by the monotonic clock."""
    key = keys.broker(broker_id)
    revision = (await store.range(key)).revision
    async for events in store.watch(key, revision):
        if any(event.kind is EventKind.DELETE for event in events):
            return time.perf_counter()
    raise AssertionError("the watch ended before the registration did")


def led_by(broker_id: int, leaders: dict[int, int]) -> set[int]:
    return {partition for partition, leader in leaders.items() if leader == broker_id}


def other_than(broker_id: int) -> int:
    return broker_id % BROKERS + 1
