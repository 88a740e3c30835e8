"""Brokers as far as `kafscale cluster` sees them: control planes that answer by the book."""

from contextlib import AsyncExitStack, asynccontextmanager

from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.control_plane.errors import NotControllerError
from kafscale.control_plane.interface import DrainResult
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    BrokerSummary,
    Move,
    PartitionStatus,
)
from kafscale.control_plane.partition import Partition
from kafscale.control_plane.server import ControlServer
from kafscale.net.host_port import Address


class BookBroker:
    """One broker of a cluster whose book is the same for all: who owns which partition of orders,
    and what the controller, which is broker 1, will move."""

    def __init__(self, number, book):
        self.id = number
        self.book = book
        self.asked = []
        self.is_draining = False
        self.problems = {}

    async def status(self, *, with_partitions):
        owned = [number for number, owner in self.book["owners"].items() if owner == self.id]
        return BrokerStatusResponse(
            broker_id=str(self.id),
            ready=not self.problems,
            problems=self.problems,
            draining=self.is_draining,
            controller_id=self.book["controller"],
            cluster_id="cluster",
            store_health="healthy",
            uptime_ms=61_000,
            brokers=[self._summary(number, port) for number, port in self.book["ports"].items()],
            partitions=[
                PartitionStatus(topic="orders", partition=number, leader=True, state="online")
                for number in owned
                if with_partitions
            ],
        )

    def _summary(self, number, port):
        owners = list(self.book["owners"].values())
        return BrokerSummary(
            broker_id=str(number),
            host="127.0.0.1",
            port=9092,
            control_port=port,
            epoch=5,
            partition_count=owners.count(number),
            shard_count=0,
            version="9",
            draining=number in self.book["draining"],
        )

    async def drain(self, partitions, reason, seconds_max):
        self.asked.append(("drain", partitions, reason, seconds_max))
        mine = [number for number, owner in self.book["owners"].items() if owner == self.id]
        pending = [number for number in mine if number in self.book["stuck"]]
        for number in set(mine) - set(pending):
            self.book["owners"][number] = self.id + 1
        return DrainResult(
            [Partition("orders", number) for number in mine if number not in pending],
            [Partition("orders", number) for number in pending],
        )

    async def flush(self, partitions):
        self.asked.append(("flush", partitions))
        mine = [number for number, owner in self.book["owners"].items() if owner == self.id]
        return partitions or [Partition("orders", number) for number in mine]

    async def rebalance(self):
        if str(self.id) != self.book["controller"]:
            raise NotControllerError("not the controller")
        rounds = self.book["rounds"]
        moving = rounds.pop(0) if rounds else []
        return [
            Move(partition=Partition("orders", number).message, from_broker="1", to_broker="2")
            for number in moving
        ]

    def partition_owners(self):
        return {}

    def subscribe(self, _listener):
        pass


@asynccontextmanager
async def control_planes(make=BookBroker, **book):
    """Two brokers, of which the second is asked first; the book may say otherwise."""
    book = {
        "owners": {0: 1, 1: 2, 2: 1},
        "controller": "1",
        "draining": (),
        "stuck": (),
        "rounds": [],
        "ports": {},
    } | book
    async with AsyncExitStack() as stack:
        brokers = []
        for number in (1, 2):
            broker = make(number, book)
            server = ControlServer(broker)
            await server.start("127.0.0.1", 0)
            stack.push_async_callback(server.close)
            book["ports"][number] = server.port
            brokers.append(broker)
        book["address"] = Address("127.0.0.1", book["ports"][2])
        yield brokers, book


@asynccontextmanager
async def cluster_of(**book):
    async with (
        control_planes(**book) as (brokers, found),
        ClusterControlClient([found["address"]]) as cluster,
    ):
        cluster.staff = brokers
        cluster.book = found
        yield cluster
