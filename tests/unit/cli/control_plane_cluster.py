"""A cluster of two fake brokers with real control plane servers, for `kafscale cluster`."""

from contextlib import AsyncExitStack, asynccontextmanager

from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.control_plane.errors import NotControllerError
from kafscale.control_plane.messages import (
    BrokerStatusResponse,
    BrokerSummary,
    Move,
    Partition,
    PartitionStatus,
)
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.service import DrainResult
from kafscale.net.address import Address


class FakeBroker:
    """One broker; all share `state`: the owners of the partitions of `orders`, and the moves that
    the controller, broker 1, plans."""

    def __init__(self, number, state):
        self.id = number
        self.state = state
        self.calls = []
        self.is_draining = False
        self.problems = {}

    async def status(self, *, with_partitions):
        owned = [number for number, owner in self.state["owners"].items() if owner == self.id]
        return BrokerStatusResponse(
            broker_id=str(self.id),
            ready=not self.problems,
            problems=self.problems,
            draining=self.is_draining,
            controller_id=self.state["controller"],
            cluster_id="cluster",
            store_health="healthy",
            uptime_ms=61_000,
            brokers=[self._summary(number, port) for number, port in self.state["ports"].items()],
            partitions=[
                PartitionStatus(topic="orders", partition=number, leader=True, state="online")
                for number in owned
                if with_partitions
            ],
        )

    def _summary(self, number, port):
        owners = list(self.state["owners"].values())
        return BrokerSummary(
            broker_id=str(number),
            host="127.0.0.1",
            port=9092,
            control_port=port,
            epoch=5,
            partition_count=owners.count(number),
            shard_count=0,
            version="9",
            draining=number in self.state["draining"],
        )

    async def drain(self, partitions, reason, seconds_max):
        self.calls.append(("drain", partitions, reason, seconds_max))
        mine = [number for number, owner in self.state["owners"].items() if owner == self.id]
        pending = [number for number in mine if number in self.state["stuck"]]
        for number in set(mine) - set(pending):
            self.state["owners"][number] = self.id + 1
        return DrainResult(
            [Partition("orders", number) for number in mine if number not in pending],
            [Partition("orders", number) for number in pending],
        )

    async def flush(self, partitions):
        self.calls.append(("flush", partitions))
        mine = [number for number, owner in self.state["owners"].items() if owner == self.id]
        return partitions or [Partition("orders", number) for number in mine]

    async def rebalance(self):
        if str(self.id) != self.state["controller"]:
            raise NotControllerError("not the controller")
        rounds = self.state["rounds"]
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
async def control_planes(broker_type=FakeBroker, **changes):
    """Run two brokers; clients get the address of the second."""
    state = {
        "owners": {0: 1, 1: 2, 2: 1},
        "controller": "1",
        "draining": (),
        "stuck": (),
        "rounds": [],
        "ports": {},
    } | changes
    async with AsyncExitStack() as stack:
        brokers = []
        for number in (1, 2):
            broker = broker_type(number, state)
            server = ControlServer(broker)
            await server.start("127.0.0.1", 0)
            stack.push_async_callback(server.close)
            state["ports"][number] = server.port
            brokers.append(broker)
        state["address"] = Address("127.0.0.1", state["ports"][2])
        yield brokers, state


@asynccontextmanager
async def cluster_of(**changes):
    async with (
        control_planes(**changes) as (brokers, state),
        ClusterControlClient([state["address"]]) as cluster,
    ):
        cluster.fake_brokers = brokers
        cluster.state = state
        yield cluster
