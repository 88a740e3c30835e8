"""A broker process reports metrics samples to an operator that starts, stops and starts again."""

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

ACCEPTS, DOES_NOT_ACCEPT = "operator accepts samples", "operator does not accept samples"
SAMPLES_S_MAX = 25


async def next_sample(config, cluster_id):
    """Start an operator; return the first sample that it receives."""
    received = asyncio.Event()

    class NotifyingSamples(ClusterSamples):
        def take(self, sample):
            super().take(sample)
            received.set()

    samples = NotifyingSamples(lambda: 0)
    async with control_plane(config, MetadataRegistry(), samples), asyncio.timeout(SAMPLES_S_MAX):
        await received.wait()
    [sample] = samples.fresh(cluster_id)
    return sample


@pytest.mark.timeout(120)
def test_broker_reports_samples_to_a_restarted_operator(tmp_path):
    config = Config(operator=Operator(host=HOST, control_port=free_port()))
    address = f"{HOST}:{config.operator.control_port}"
    with BrokerProcess(tmp_path, control_operator_address=address) as broker:
        kafscale = Shell(broker.address)
        kafscale("topic", "create", "orders", "-p", "3")
        kafscale.produce("orders", lines=["a", "b"])

        async def scenario():
            async with ControlClient(broker.control_address) as client:
                status = await client.status(with_partitions=False)
            first = await next_sample(config, status.cluster_id)
            assert first.broker_id == status.broker_id
            assert first.gauges["kafscale_owned_partitions"] == 3
            assert first.counters["kafscale_produce_bytes_total"] > 0
            second = await next_sample(config, status.cluster_id)
            assert second.timestamp_ms > first.timestamp_ms
            assert second.gauges["kafscale_idle_seconds"] > first.gauges["kafscale_idle_seconds"]

        asyncio.run(scenario())
        logged = [
            (event["event"], event.get("reason"))
            for event in map(json.loads, filter(is_event, broker.logged().splitlines()))
            if event["event"] in {ACCEPTS, DOES_NOT_ACCEPT}
        ]
        assert logged[0][0] == DOES_NOT_ACCEPT, "the broker started before the operator"
        assert all(one != after for one, after in pairwise(logged)), "only changes are logged"


def is_event(line):
    return line.startswith("{")
