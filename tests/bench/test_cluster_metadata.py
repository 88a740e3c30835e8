"""What etcd has to write while clients produce: as much as when they do not.

Revisions count the transactions that change something; proposals are what its members agree upon,
which also counts leases. Both are etcd's own figures.
"""

import asyncio
import urllib.request

import pytest
import uvloop

from bench.cluster_load import open_connections, send_load
from bench.cluster_probe import Probe
from bench.cluster_servers import DirectCluster
from bench.comparison import Figures

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

BROKERS = 3
PARTITIONS = 30
RATES = (0, 1_000, 10_000)
SECONDS = 10
WARM_UP_S = 2
MORE_WRITES_PER_SECOND_MAX = 1.0
PROPOSALS = "etcd_server_proposals_committed_total "


def test_etcd_writes(comparisons, tmp_path, scaled):
    comparison = comparisons.new(
        f"etcd of {BROKERS} brokers, by produce requests asked for a second"
    )
    with DirectCluster(tmp_path, brokers=BROKERS) as cluster:
        topic = cluster.new_topic(PARTITIONS)
        cluster.wait_until_settled()
        result = uvloop.run(scenario(cluster, topic, scaled(SECONDS)))
    for rate, figures in result.items():
        comparison.add(f"{rate:,}", figures)
    idle, busy = result[RATES[0]], result[RATES[-1]]
    assert busy["revisions/s"] <= idle["revisions/s"] + MORE_WRITES_PER_SECOND_MAX


async def scenario(cluster: DirectCluster, topic: str, seconds: int) -> dict[int, Figures]:
    async with Probe(cluster.addresses, topic) as probe:
        leaders = await probe.leaders(through=1)
    async with open_connections(cluster.addresses, leaders, topic) as connections:
        result = {}
        for rate in RATES:
            await send_load(connections, per_second=rate, seconds=WARM_UP_S)
            before = await asyncio.to_thread(counted, cluster)
            responses = await send_load(connections, per_second=rate, seconds=seconds)
            after = await asyncio.to_thread(counted, cluster)
            rates = {name: (after[name] - before[name]) / seconds for name in after}
            result[rate] = {"requests/s": responses / seconds} | rates
        return result


def counted(cluster: DirectCluster) -> Figures:
    return {
        "revisions/s": cluster.revision(),
        "proposals/s": proposals(cluster.etcd.members[0].endpoint),
        "brokers' CPU %": 100 * cluster.cpu_seconds(),
    }


def proposals(endpoint: str) -> float:
    with urllib.request.urlopen(f"http://{endpoint}/metrics", timeout=5) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.removeprefix(PROPOSALS)) for line in lines if line.startswith(PROPOSALS))
