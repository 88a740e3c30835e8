"""A broker that does what a test says, its control plane, and a client of it."""

import asyncio
from contextlib import asynccontextmanager

from kafscale.control_plane.assignment_feed import Holding
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.interface import Drained
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    Move,
    PartitionStatus,
    SealTailResponse,
    SwapSegmentsResponse,
)
from kafscale.control_plane.partition import Partition
from kafscale.control_plane.server import ControlServer

ORDERS_0 = Partition("orders", 0)
ORDERS_1 = Partition("orders", 1)


class ScriptedBroker:
    """Answers by the book; `failure` is raised instead, and `gate` holds it up."""

    id = 3

    def __init__(self):
        self.asked = []
        self.failure = None
        self.gate = None
        self.was_asked = asyncio.Event()
        self.held = {ORDERS_0: Holding(3, 7)}
        self.listeners = []

    async def _answer(self, *asked):
        self.asked.append(asked)
        self.was_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def status(self, *, with_partitions):
        await self._answer("status", with_partitions)
        owned = [PartitionStatus(topic="orders", log_end_offset=12)] if with_partitions else []
        return BrokerStatusResponse(broker_id="3", ready=True, partitions=owned)

    async def drain(self, partitions, reason, seconds_max):
        await self._answer("drain", partitions, reason, seconds_max)
        return Drained(drained=[ORDERS_0], pending=[ORDERS_1])

    async def flush(self, partitions):
        await self._answer("flush", partitions)
        return partitions or [ORDERS_0, ORDERS_1]

    async def seal_tail(self, partition):
        await self._answer("seal", partition)
        return SealTailResponse(rolled_end_offset=12, log_start_offset=2)

    async def swap_segments(self, partition, job):
        await self._answer("swap", partition, job)
        return SwapSegmentsResponse(base_offset=2, end_offset=9, segments_before=4)

    async def rebalance(self):
        await self._answer("rebalance")
        return [Move(partition=ORDERS_1.message, from_broker="3", to_broker="4")]

    def holdings(self):
        return self.held

    def subscribe(self, listener):
        self.listeners.append(listener)

    def assign(self, **held):
        """Change who holds what; what is None is nobody's any more."""
        for name, holding in held.items():
            topic, number = name.split("_")
            if holding is None:
                del self.held[Partition(topic, int(number))]
            else:
                self.held[Partition(topic, int(number))] = holding
        for listener in self.listeners:
            listener()


@asynccontextmanager
async def served(broker=None):
    """A client of a control plane that listens on a port of its own."""
    broker = broker or ScriptedBroker()
    server = ControlServer(broker)
    await server.start("127.0.0.1", 0)
    try:
        async with ControlClient(f"127.0.0.1:{server.port}") as client:
            client.server = server
            client.broker = broker
            yield client
    finally:
        await server.close()


async def take(events, count):
    """The next events of a watch, in short."""
    return [short(await anext(events)) for _ in range(count)]


def short(event):
    target = f">{event.moving_to}" if event.moving_to else ""
    return (
        f"{event.partition.topic}/{event.partition.partition}"
        f" {event.status} {event.broker_id}{target} @{event.epoch}"
    )
