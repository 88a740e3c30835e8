"""The id of a broker: configured, from its host name, or allocated."""

import asyncio

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.cluster.broker_id import CONFIGURED_ID_MAX, determine, process_location
from kafscale.net.address import Address


def determined(*brokers, is_embedded=False):
    """The ids of brokers that start one after the other with one metadata store."""

    async def start():
        store = MemoryStore(virtual_time.clock_ms)
        return [
            await determine(store, configured, host_name, port, is_embedded=is_embedded)
            for configured, host_name, port in brokers
        ]

    return asyncio.run(start())


@pytest.mark.parametrize(
    ("configured", "host_name", "expected"),
    [
        (7, "broker-2", 7),
        (0, "host", 0),
        (None, "broker-2", 2),
        (None, "kafscale-broker-12.kafscale.svc.cluster.local", 12),
    ],
)
def test_configured_id_comes_before_the_number_in_the_host_name(configured, host_name, expected):
    assert determined((configured, host_name, 9092)) == [expected]


@pytest.mark.parametrize("host_name", ["host", "broker2", "10.0.0.17", "pod-x2k4p", "a-123456789"])
def test_embedded_broker_without_a_number_in_its_host_name_has_id_0(host_name):
    assert determined((None, host_name, 9092), is_embedded=True) == [0]


def test_allocated_ids_differ_and_are_kept_across_restarts():
    alpha, beta, other_port = (None, "alpha", 9092), (None, "beta", 9092), (None, "alpha", 9192)
    ids = determined(alpha, beta, other_port, beta, alpha)
    assert ids == [1001, 1002, 1003, 1002, 1001]
    assert min(ids) > CONFIGURED_ID_MAX


def test_processes_that_start_at_once_get_different_ids_unless_they_are_one_broker():
    async def scenario(_random):
        store = MemoryStore(virtual_time.clock_ms)
        names = [f"host{number % 5}" for number in range(20)]
        ids = await asyncio.gather(
            *(determine(store, None, name, 9092, is_embedded=False) for name in names)
        )
        assert len(set(zip(names, ids, strict=True))) == len(set(ids)) == 5

    virtual_time.run(scenario, seed=0)


def test_location_tells_ports_apart():
    here = process_location(Address("127.0.0.1", 9092))
    assert process_location(Address("127.0.0.1", 9092)) == here
    assert process_location(Address("127.0.0.1", 9093)) != here
