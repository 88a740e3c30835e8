"""A scripted broker, its control plane, and a client of it."""

import asyncio
from contextlib import asynccontextmanager

from kafscale.control_plane.assignment_feed import PartitionOwner
from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    Move,
    Partition,
    PartitionStatus,
    SealTailResponse,
    SwapSegmentsResponse,
)
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.service import DrainResult

ORDERS_0 = Partition("orders", 0)
ORDERS_1 = Partition("orders", 1)


class ScriptedBroker:
    """Responds with fixed values; `failure` is raised instead, and `gate` blocks it."""

    id = 3

    def __init__(self):
        self.calls = []
        self.failure = None
        self.gate = None
        self.called = asyncio.Event()
        self.owners = {ORDERS_0: PartitionOwner(3, 7)}
        self.listeners = []

    async def _record(self, *calls):
        self.calls.append(calls)
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def status(self, *, with_partitions):
        await self._record("status", with_partitions)
        owned = [PartitionStatus(topic="orders", log_end_offset=12)] if with_partitions else []
        return BrokerStatusResponse(broker_id="3", ready=True, partitions=owned)

    async def drain(self, partitions, reason, seconds_max):
        await self._record("drain", partitions, reason, seconds_max)
        return DrainResult(drained=[ORDERS_0], pending=[ORDERS_1])

    async def flush(self, partitions):
        await self._record("flush", partitions)
        return partitions or [ORDERS_0, ORDERS_1]

    async def seal_tail(self, partition):
        await self._record("seal", partition)
        return SealTailResponse(rolled_end_offset=12, log_start_offset=2)

    async def swap_segments(self, partition, job, checksums):
        await self._record("swap", partition, job, list(checksums))
        return SwapSegmentsResponse(base_offset=2, end_offset=9, segments_before=4)

    async def rebalance(self):
        await self._record("rebalance")
        return [Move(partition=ORDERS_1.message, from_broker="3", to_broker="4")]

    async def write_markers(self, markers):
        await self._record("markers", [each.producer_id for each in markers])
        return [0, 7, 0]

    async def add_to_transaction(self, request):
        await self._record("transaction", request.transactional_id, request.verify_only)
        return [0, 51]

    def partition_owners(self):
        return self.owners

    def subscribe(self, listener):
        self.listeners.append(listener)

    def assign(self, **owners):
        """Change the owners of partitions; None releases one."""
        for name, owner in owners.items():
            topic, number = name.split("_")
            if owner is None:
                del self.owners[Partition(topic, int(number))]
            else:
                self.owners[Partition(topic, int(number))] = owner
        for listener in self.listeners:
            listener()


@asynccontextmanager
async def served(broker=None):
    """A client of a control plane with its own port."""
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


async def next_events(events, count):
    """The next events of a watch, in short form."""
    return [describe(await anext(events)) for _ in range(count)]


def describe(event):
    target = f">{event.moving_to}" if event.moving_to else ""
    return (
        f"{event.partition.topic}/{event.partition.partition}"
        f" {event.status} {event.broker_id}{target} @{event.epoch}"
    )
