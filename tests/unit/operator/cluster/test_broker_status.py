"""Tests of collecting broker status: combining, caching, and unresponsive brokers."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.control_plane.errors import UnreachableError
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    MetricsSample,
    Partition,
    PartitionStatus,
)
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_broker
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.store.base import Put
from kafscale.operator.cluster.broker_status import (
    CONCURRENT_REQUESTS_MAX,
    FRESH_MS,
    IDLE,
    BrokerStatusCollector,
    fetch_over_control_plane,
    summarize,
)
from kafscale.operator.cluster.metadata import ClusterMetadata
from unit.control_plane.scripted_broker import ScriptedBroker, served


def registered(broker_id, **more):
    return BrokerInfo(id=broker_id, epoch=1, host="a", port=9092, **more)


def test_responses_are_combined():
    statuses = summarize(
        {
            0: BrokerStatusResponse(
                broker_id="0",
                partitions=[
                    PartitionStatus(topic="orders", partition=0, leader=True, log_end_offset=7),
                    PartitionStatus(topic="orders", partition=1, leader=False, log_end_offset=3),
                ],
                idle_seconds=9,
            ),
            1: BrokerStatusResponse(
                broker_id="1",
                partitions=[
                    PartitionStatus(topic="orders", partition=1, leader=True, log_end_offset=4)
                ],
                idle_seconds=8,
            ),
        }
    )
    assert statuses.log_end_offsets == {Partition("orders", 0): 7, Partition("orders", 1): 4}
    assert statuses.idle_seconds == 8


def test_idle_time_is_unknown_without_brokers_or_with_an_unresponsive_one():
    response = BrokerStatusResponse(broker_id="0", idle_seconds=5)
    assert summarize({0: response}).idle_seconds == 5
    assert summarize({0: response, 1: None}).idle_seconds is None
    assert summarize({}).idle_seconds is None


class Brokers:
    """Brokers that respond after a second; `unresponsive` ones never, `unreachable` ones fail."""

    def __init__(self, count):
        self.store = MemoryStore(virtual_time.clock_ms)
        self.metadata = ClusterMetadata(self.store, "objects")
        self.count = count
        self.request_count = 0
        self.concurrent_requests = self.concurrent_requests_max = 0
        self.unresponsive = self.unreachable = frozenset()

    async def start(self):
        for broker_id in range(self.count):
            value = encode_broker(registered(broker_id), 0)
            await self.store.commit([], [Put(keys.broker(broker_id), value)])
        await self.metadata.start()

    async def response(self, _metadata, broker):
        self.request_count += 1
        self.concurrent_requests += 1
        self.concurrent_requests_max = max(self.concurrent_requests_max, self.concurrent_requests)
        try:
            if broker.id in self.unreachable:
                raise UnreachableError("a:0", "UNAVAILABLE", "connection refused")
            await asyncio.sleep(3600 if broker.id in self.unresponsive else 1)
        finally:
            self.concurrent_requests -= 1
        owned = PartitionStatus(topic="orders", partition=broker.id, leader=True)
        return BrokerStatusResponse(broker_id=str(broker.id), partitions=[owned])


def run_test(body, count=3):
    async def scenario(_random):
        brokers = Brokers(count)
        await brokers.start()
        try:
            return await body(
                brokers, BrokerStatusCollector(brokers.response, virtual_time.clock_ms)
            )
        finally:
            await brokers.metadata.close()

    return virtual_time.run(scenario, seed=0)


def test_result_is_cached_for_some_seconds():
    async def body(brokers, collector):
        results = await asyncio.gather(*(collector.collect(brokers.metadata) for _ in range(100)))
        assert all(each is results[0] for each in results)
        assert brokers.request_count == 3
        await asyncio.sleep(FRESH_MS / 1000)
        assert await collector.collect(brokers.metadata) is not results[0]
        return brokers.request_count

    assert run_test(body) == 6


def test_unresponsive_brokers_do_not_delay_the_result():
    async def body(brokers, collector):
        brokers.unresponsive, brokers.unreachable = {0}, {2}
        begun_ms = virtual_time.clock_ms()
        statuses = await collector.collect(brokers.metadata)
        assert list(statuses.log_end_offsets) == [Partition("orders", 1)]
        return virtual_time.clock_ms() - begun_ms

    assert run_test(body) < 5000


def test_concurrent_requests_are_bounded():
    async def body(brokers, collector):
        statuses = await collector.collect(brokers.metadata)
        return len(statuses.log_end_offsets), brokers.concurrent_requests_max

    assert run_test(body, count=50) == (50, CONCURRENT_REQUESTS_MAX)


def test_cache_is_dropped_with_the_metadata():
    async def body(brokers, collector):
        await collector.collect(brokers.metadata)
        assert len(collector._cached) == 1
        await brokers.metadata.close()
        brokers.metadata = ClusterMetadata(brokers.store, "objects")
        await asyncio.sleep(1)
        return len(collector._cached)

    assert run_test(body) == 0


def test_registered_address_of_a_broker_is_not_used():
    """Tenants can write to the metadata of their cluster."""

    async def body():
        async with served(ScriptedBroker()) as own, served(ScriptedBroker()) as foreign:
            port = foreign.server.port
            named_elsewhere = registered(3, control_host="127.0.0.1", control_port=port)
            fetch = fetch_over_control_plane(lambda _, __: own.address, None)
            response = await fetch(None, named_elsewhere)
            calls = [each.server._broker.calls for each in (own, foreign)]
        return response.broker_id, [bool(each) for each in calls]

    assert asyncio.run(body()) == ("3", [True, False])


@pytest.mark.parametrize(("idle_seconds", "expected"), [(9.5, 9.5), (100, 70.5), (1e308, 70.5)])
def test_sample_shortens_the_idle_time_but_never_extends_it(idle_seconds, expected):
    samples = {
        "red": [MetricsSample(broker_id="0", timestamp_ms=9, gauges={IDLE: idle_seconds})],
        "blue": [MetricsSample(broker_id="0", timestamp_ms=9, gauges={IDLE: 0})],
    }

    async def body(brokers, _collector):
        async def response(_metadata, broker):
            own_seconds = 70.5 + broker.id
            return BrokerStatusResponse(
                broker_id=str(broker.id), cluster_id="red", idle_seconds=own_seconds
            )

        collector = BrokerStatusCollector(
            response, virtual_time.clock_ms, lambda each: samples[each]
        )
        return (await collector.collect(brokers.metadata)).idle_seconds

    assert run_test(body, count=2) == expected
