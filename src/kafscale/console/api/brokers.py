"""Brokers: list, describe, drain and flush; rebalance of partitions.

Brokers are shown as of the last poll; changes are sent to the brokers directly, and the cluster is
polled after every change.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.admin.cluster import operations
from kafscale.console.api.route import ApiContext, ApiRequest, Route
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
from kafscale.control_plane.messages import Partition
from kafscale.errors import InvalidRequestError, ResourceNotFoundError

DRAIN_SECONDS_MAX: Final = 600
REBALANCE_SECONDS_MAX: Final = 300.0
SLOW: Final = ("slow",)


async def list_brokers(context: ApiContext, _: ApiRequest) -> list[Broker]:
    if context.monitor.overview is None:
        await context.monitor.refresh()
    overview = context.monitor.overview
    return overview.brokers if overview else []


async def describe(context: ApiContext, request: ApiRequest) -> BrokerDetail:
    if context.monitor.overview is None:
        await context.monitor.refresh()
    return context.monitor.broker(_id(request))


async def drain(context: ApiContext, request: ApiRequest) -> Drained:
    body: Drain = request.body
    if not 1 <= body.deadline_seconds <= DRAIN_SECONDS_MAX:
        raise InvalidRequestError(f"deadlineSeconds must be between 1 and {DRAIN_SECONDS_MAX}")
    broker_id = _id(request)
    async with context.connections.control_plane() as control:
        _check_known(broker_id, control.brokers)
        result = await operations.drain(
            control,
            str(broker_id),
            reason=body.reason,
            deadline_seconds=body.deadline_seconds,
            progress=_ignore_progress,
        )
    await context.monitor.refresh()
    return result


async def flush(context: ApiContext, request: ApiRequest) -> Flushed:
    """Write segments of all partitions of a broker."""
    broker_id = _id(request)
    async with context.connections.control_plane() as control:
        _check_known(broker_id, control.brokers)
        client = await control.client(str(broker_id))
        flushed: list[Partition] = await client.flush(None)
    await context.monitor.refresh()
    return Flushed(
        partitions=[PartitionName(topic=each.topic, partition=each.number) for each in flushed]
    )


async def rebalance(context: ApiContext, _: ApiRequest) -> Rebalanced:
    """Rebalance partitions; ends when nothing moves any more, or after a time limit."""
    async with context.connections.control_plane() as control:
        moves = await operations.rebalance(
            control, seconds_max=REBALANCE_SECONDS_MAX, progress=_ignore_progress
        )
    await context.monitor.refresh()
    return Rebalanced(moves=msgspec.convert(moves, list[Move], from_attributes=True))


def _id(request: ApiRequest) -> int:
    text = request.path["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise InvalidRequestError(f"{text[:20]!r} is not a broker id, which is a number")
    return int(text)


def _check_known(broker_id: int, known: Mapping[str, object]) -> None:
    if str(broker_id) not in known:
        alive = ", ".join(known) or "none"
        raise ResourceNotFoundError(f"there is no broker {broker_id}; the brokers are: {alive}")


def _ignore_progress(done: int, total: int) -> None:
    """Pages show progress from the overview events."""


ROUTES = (
    Route("GET", "/brokers", list_brokers, response=list[Broker]),
    Route("GET", "/brokers/{id}", describe, response=BrokerDetail),
    Route("POST", "/brokers/{id}/drain", drain, body=Drain, response=Drained, tags=SLOW),
    Route("POST", "/brokers/{id}/flush", flush, response=Flushed, tags=SLOW),
    Route("POST", "/rebalance", rebalance, response=Rebalanced, tags=SLOW),
)
