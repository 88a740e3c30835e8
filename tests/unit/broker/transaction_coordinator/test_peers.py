"""`ControlPlanePeers`, with control planes on real sockets."""

import asyncio
from random import Random
from types import SimpleNamespace

import pytest

from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.broker.transaction_coordinator.peers import ControlPlanePeers
from kafscale.control_plane.messages import AddPartitionsToTransactionRequest
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.model import BrokerInfo
from services.link import Link
from services.link_fault import HEALTHY, Fault
from unit.broker.harness import run
from unit.control_plane.scripted_broker import ORDERS_0, ORDERS_1, ScriptedBroker, served

ID = ScriptedBroker.id


def marker(count):
    return Marker(5, 0, 0, True, [("orders", number) for number in range(count)])


def registered(client, epoch=1):
    host, port = client.address.split(":")
    return BrokerInfo(
        id=ID, epoch=epoch, host=host, port=1, control_host=host, control_port=int(port)
    )


def test_results_are_those_of_the_broker():
    async def scenario():
        cache = SimpleNamespace(brokers={})
        peers = ControlPlanePeers(cache, None)
        with pytest.raises(KafscaleError, match="broker 3 is not registered"):
            await peers.write_markers(ID, [marker(3)])
        async with served() as client:
            cache.brokers[ID] = registered(client)
            assert list(await peers.write_markers(ID, [marker(1), marker(2)])) == [0, 7, 0]
            with pytest.raises(KafscaleError, match="3 results instead of 1"):
                await peers.write_markers(ID, [marker(1)])
            request = AddPartitionsToTransactionRequest(
                partitions=[ORDERS_0.message, ORDERS_1.message]
            )
            assert list(await peers.add_to_transaction(ID, request)) == [0, 51]
            await peers.close()

    run(scenario)


def test_calls_end_when_the_broker_has_another_address():
    """Their tasks continue: markers that a cancelled task had would never be sent."""

    async def scenario():
        cache = SimpleNamespace(brokers={})
        peers = ControlPlanePeers(cache, None)
        async with served() as before, served() as after:
            before.broker.gate = asyncio.Event()
            cache.brokers[ID] = registered(before)
            waiting = asyncio.create_task(peers.write_markers(ID, [marker(3)]))
            await before.broker.called.wait()
            cache.brokers[ID] = registered(after)
            first, second = await asyncio.gather(
                *(peers.write_markers(ID, [marker(3)]) for _ in range(2))
            )
            assert list(first) == list(second) == [0, 7, 0]
            with pytest.raises(KafscaleError, match="the client was closed"):
                await waiting
            before.broker.gate.set()
            await peers.close()

    run(scenario)


@pytest.mark.parametrize("is_registered_again", [True, False])
def test_connection_to_a_lost_machine_is_not_used_again(is_registered_again):
    """It has no end: nothing answers. Another machine may have the address of the broker then."""

    async def scenario():
        async with served() as client:
            link = Link(client.server.port, Random(0))
            await link.listen()
            client.address = f"127.0.0.1:{link.port}"
            cache = SimpleNamespace(brokers={ID: registered(client)})
            peers = ControlPlanePeers(cache, None, marker_seconds_max=0.5)
            assert list(await peers.write_markers(ID, [marker(3)])) == [0, 7, 0]
            if is_registered_again:
                cache.brokers[ID] = registered(client, epoch=2)
            else:
                await link.set(Fault(holds="everything"))
                with pytest.raises(KafscaleError, match="no broker responds"):
                    await peers.write_markers(ID, [marker(3)])
                await link.set(HEALTHY)
            assert list(await peers.write_markers(ID, [marker(3)])) == [0, 7, 0]
            assert link.counts.connections == 2
            await peers.close()
            await link.close()

    asyncio.run(scenario())  # The link ends connections by cancelling, which the loop logs.


def test_verification_has_a_connection_of_its_own():
    """One connection serves a limited number of requests, and markers may wait for the bucket."""

    async def scenario():
        cache = SimpleNamespace(brokers={})
        peers = ControlPlanePeers(cache, None)
        async with served() as client:
            cache.brokers[ID] = registered(client)
            request = AddPartitionsToTransactionRequest(partitions=[ORDERS_0.message] * 2)
            client.broker.gate = asyncio.Event()
            markers = asyncio.create_task(peers.write_markers(ID, [marker(3)]))
            await client.broker.called.wait()
            client.broker.gate, gate = None, client.broker.gate
            assert list(await peers.add_to_transaction(ID, request)) == [0, 51]
            cache.brokers[ID] = registered(client, epoch=2)
            assert list(await peers.add_to_transaction(ID, request)) == [0, 51]
            gate.set()
            assert list(await markers) == [0, 7, 0], "its connection was not closed"
            await peers.close()

    run(scenario)
