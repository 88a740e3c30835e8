"""A broker process reports metrics samples to an operator that starts, stops and starts again."""

import asyncio
import json
from itertools import pairwise

import pytest

from doubles.memory_store import MemoryStore
from kafscale.aio.clock import clock
from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.operator import Operator
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.samples import ClusterSamples
from kafscale.metadata.schema import keys
from kafscale.metadata.store.base import Put
from kafscale.operator.cluster.metadata import MetadataRegistry
from kafscale.operator.control_plane import control_plane
from services.broker import HOST, BrokerProcess
from services.process import free_port
from services.shell import Shell
from unit.operator.issued_certificates import PLATFORM, IssuedCertificates

ACCEPTS, DOES_NOT_ACCEPT = "operator accepts samples", "operator does not accept samples"
SAMPLES_S_MAX = 25


async def next_sample(settings, certificates, cluster_id):
    """Start an operator of the cluster `shop`; return the first sample that it receives."""
    received = asyncio.Event()

    class NotifyingSamples(ClusterSamples):
        def take(self, sample):
            super().take(sample)
            received.set()

    samples = NotifyingSamples(clock)
    store = MemoryStore(lambda: 0)
    await store.commit([], [Put(keys.CLUSTER_ID, cluster_id.encode())])
    registry = MetadataRegistry(lambda _: store)
    await registry.open("default", "shop", Etcd(endpoints=("etcd:2379",)), "objects")
    serving = control_plane(settings, PLATFORM, registry, samples, certificates.issuer.files)
    async with serving, asyncio.timeout(SAMPLES_S_MAX):
        await received.wait()
    await registry.close_all()
    [sample] = samples.fresh(cluster_id)
    return sample


@pytest.mark.timeout(120)
def test_broker_reports_samples_to_a_restarted_operator(tmp_path):
    operator = Operator(host=HOST, control_port=free_port())
    certificates = IssuedCertificates(tmp_path / "certificates")
    tls = asyncio.run(certificates.of_brokers("shop"))
    settings = {
        "control_operator_address": f"{HOST}:{operator.control_port}",
        "control_tls_enabled": "true",
        "control_tls_ca_file": tls.ca_file,
        "control_tls_cert_file": tls.cert_file,
        "control_tls_key_file": tls.key_file,
    }
    with BrokerProcess(tmp_path, **settings) as broker:
        kafscale = Shell(broker.address)
        kafscale("topic", "create", "orders", "-p", "3")
        kafscale.produce("orders", lines=["a", "b"])

        async def scenario():
            async with ControlClient(broker.control_address, tls) as client:
                status = await client.status(with_partitions=False)
            first = await next_sample(operator, certificates, status.cluster_id)
            assert first.broker_id == status.broker_id
            assert first.gauges["kafscale_owned_partitions"] == 3
            assert first.counters["kafscale_produce_bytes_total"] > 0
            second = await next_sample(operator, certificates, status.cluster_id)
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
