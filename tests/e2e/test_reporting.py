"""A broker that is a process of its own reports to an operator, which comes and goes."""

import asyncio
import json
from itertools import pairwise

import pytest

from kafscale.config import Config
from kafscale.config.sections.operator import Operator
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.samples import ClusterSamples
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.control_plane import control_plane
from services.broker import HOST, BrokerProcess
from services.process import free_port
from services.shell import Shell

TAKES, DOES_NOT = "operator accepts samples", "operator does not accept samples"
SAMPLES_S_MAX = 25


async def next_sample(config, cluster_id):
    """A sample that comes to a new operator."""
    came = asyncio.Event()

    class Taking(ClusterSamples):
        def take(self, sample):
            super().take(sample)
            came.set()

    samples = Taking(lambda: 0)
    async with control_plane(config, MetadataRegistry(), samples), asyncio.timeout(SAMPLES_S_MAX):
        await came.wait()
    [sample] = samples.fresh(cluster_id)
    return sample


@pytest.mark.timeout(120)
def test_samples_come_to_an_operator_that_comes_and_goes(tmp_path):
    config = Config(operator=Operator(host=HOST, control_port=free_port()))
    address = f"{HOST}:{config.operator.control_port}"
    with BrokerProcess(tmp_path, control_operator_address=address) as broker:
        kafscale = Shell(broker.address)
        kafscale("topic", "create", "orders", "-p", "3")
        kafscale.produce("orders", lines=["a", "b"])

        async def story():
            async with ControlClient(f"{HOST}:{broker.metrics_port}") as client:
                status = await client.status(with_partitions=False)
            first = await next_sample(config, status.cluster_id)
            assert first.broker_id == status.broker_id
            assert first.gauges["kafscale_owned_partitions"] == 3
            assert first.counters["kafscale_produce_bytes_total"] > 0
            second = await next_sample(config, status.cluster_id)
            assert second.timestamp_ms > first.timestamp_ms
            assert second.gauges["kafscale_idle_seconds"] > first.gauges["kafscale_idle_seconds"]

        asyncio.run(story())
        told = [
            (event["event"], event.get("reason"))
            for event in map(json.loads, filter(is_event, broker.logged().splitlines()))
            if event["event"] in {TAKES, DOES_NOT}
        ]
        assert told[0][0] == DOES_NOT, "it was there before the operator"
        assert all(one != after for one, after in pairwise(told)), "only changes are told"


def is_event(line):
    return line.startswith("{")
