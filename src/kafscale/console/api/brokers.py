"""Brokers: looked at, drained and flushed, and partitions spread over them anew.

The law: what is shown is what was seen last, and who is changed is asked directly; after every
change the watch looks again.
"""

from collections.abc import Mapping
from typing import Final

from kafscale.admin.cluster import brokers
from kafscale.console.api.route import Call, Route
from kafscale.console.context import Room
from kafscale.console.schema.cluster import (
    Broker,
    BrokerDetail,
    Drain,
    Drained,
    Flushed,
    Move,
    PartitionName,
    Rebalanced,
)
from kafscale.control_plane.partition import Partition
from kafscale.errors import InvalidRequestError, ResourceNotFoundError

DRAIN_SECONDS_MAX: Final = 600
REBALANCE_SECONDS_MAX: Final = 300.0
SLOW: Final = ("slow",)


async def list_brokers(room: Room, _: Call) -> list[Broker]:
    if room.watch.overview is None:
        await room.watch.look()
    told = room.watch.overview
    return told.brokers if told else []


async def describe(room: Room, call: Call) -> BrokerDetail:
    if room.watch.overview is None:
        await room.watch.look()
    return room.watch.broker(_id(call))


async def drain(room: Room, call: Call) -> Drained:
    asked: Drain = call.body
    if not 1 <= asked.deadline_seconds <= DRAIN_SECONDS_MAX:
        raise InvalidRequestError(f"a drain is given 1 to {DRAIN_SECONDS_MAX} seconds")
    broker_id = _id(call)
    async with room.reach.cluster() as cluster:
        _check_known(broker_id, cluster.brokers)
        told = await brokers.drain(
            cluster,
            str(broker_id),
            reason=asked.reason,
            deadline_seconds=asked.deadline_seconds,
            progress=_unwatched,
        )
    await room.watch.look()
    return Drained(
        broker=told["broker"],
        drained=[PartitionName(**each) for each in told["drained"]],
        pending=[PartitionName(**each) for each in told["pending"]],
    )


async def flush(room: Room, call: Call) -> Flushed:
    """Have segments made of everything that a broker serves."""
    broker_id = _id(call)
    async with room.reach.cluster() as cluster:
        _check_known(broker_id, cluster.brokers)
        client = await cluster.client(str(broker_id))
        flushed: list[Partition] = await client.flush(None)
    await room.watch.look()
    return Flushed(
        partitions=[PartitionName(topic=each.topic, partition=each.number) for each in flushed]
    )


async def rebalance(room: Room, _: Call) -> Rebalanced:
    """Have partitions spread evenly; ends when nothing moves any more, or time is up."""
    async with room.reach.cluster() as cluster:
        moves = await brokers.rebalance(
            cluster, seconds_max=REBALANCE_SECONDS_MAX, progress=_unwatched
        )
    await room.watch.look()
    return Rebalanced(
        moves=[
            Move(
                topic=each["topic"],
                partition=each["partition"],
                source=each["from"],
                target=each["to"],
                done=each["done"],
            )
            for each in moves
        ]
    )


def _id(call: Call) -> int:
    text = call.path["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InvalidRequestError(f"{text[:20]!r} is not the id of a broker, which is a number")
    return int(text)


def _check_known(broker_id: int, known: Mapping[str, object]) -> None:
    if str(broker_id) not in known:
        alive = ", ".join(known) or "none"
        raise ResourceNotFoundError(f"there is no broker {broker_id}; the brokers are: {alive}")


def _unwatched(done: int, total: int) -> None:
    """The pages see progress by themselves: they look on while it lasts."""


ROUTES = (
    Route("GET", "/brokers", list_brokers, gives=list[Broker]),
    Route("GET", "/brokers/{id}", describe, gives=BrokerDetail),
    Route("POST", "/brokers/{id}/drain", drain, takes=Drain, gives=Drained, tags=SLOW),
    Route("POST", "/brokers/{id}/flush", flush, gives=Flushed, tags=SLOW),
    Route("POST", "/rebalance", rebalance, gives=Rebalanced, tags=SLOW),
)
